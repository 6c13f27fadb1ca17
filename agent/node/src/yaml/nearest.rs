//! The known word nearest to an unknown one.

/// The candidate that a person most likely meant by `word`: few letters apart, or equal but for case and separators.
/// `None` where nothing comes near enough to be worth a line.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(word);
    let limit = ((folded.len() + 1) / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&folded, &fold(candidate)), candidate))
        .filter(|&(apart, _)| apart <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

fn fold(word: &str) -> Vec<char> {
    word.chars().filter(|c| !matches!(c, '-' | '_' | '.')).flat_map(char::to_lowercase).collect()
}

/// Letters to insert, delete, change or swap with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    // Words longer than any key of ours are never near one; this also bounds the work.
    if a.len().max(b.len()) > 64 {
        return usize::MAX;
    }
    let width = b.len() + 1;
    let mut rows = vec![0usize; (a.len() + 1) * width];
    let at = |i: usize, j: usize| i * width + j;
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            let cost = if i == 0 || j == 0 {
                i + j
            } else {
                let same = usize::from(a[i - 1] != b[j - 1]);
                let mut best =
                    (rows[at(i - 1, j)] + 1).min(rows[at(i, j - 1)] + 1).min(rows[at(i - 1, j - 1)] + same);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[at(i - 2, j - 2)] + 1);
                }
                best
            };
            rows[at(i, j)] = cost;
        }
    }
    rows[at(a.len(), b.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typing_mistakes() {
        let keys = ["socket", "uplink", "loss-grace", "info-file"];
        assert_eq!(nearest("sokcet", keys), Some("socket"));
        assert_eq!(nearest("up-link", keys), Some("uplink"));
        assert_eq!(nearest("lossGrace", keys), Some("loss-grace"));
        assert_eq!(nearest("loss-grade", keys), Some("loss-grace"));
    }

    #[test]
    fn says_nothing_when_nothing_is_near() {
        assert_eq!(nearest("database", ["socket", "uplink"]), None);
        assert_eq!(nearest(&"x".repeat(1000), ["socket"]), None);
        assert_eq!(nearest("", ["socket"]), None);
    }

    #[test]
    fn ties_are_settled_by_the_alphabet() {
        assert_eq!(nearest("abx", ["abz", "aby"]), Some("aby"));
    }
}
