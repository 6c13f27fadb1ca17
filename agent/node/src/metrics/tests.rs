use super::text::Exposition;

#[test]
fn samples_of_a_metric_stand_together() {
    let mut out = Exposition::default();
    out.gauge("b", "two\nlines", &[("kind", "a\"b\\c\nd"), ("state", "")], 1);
    out.counter("a", "a \"count\"", &[], u64::MAX);
    out.gauge("b", "not looked at", &[], 2);
    assert_eq!(
        out.finish(),
        "# HELP a a \"count\"\n# TYPE a counter\na 18446744073709551615\n\
         # HELP b two\\nlines\n# TYPE b gauge\nb{kind=\"a\\\"b\\\\c\\nd\",state=\"\"} 1\nb 2\n"
    );
    assert_eq!(Exposition::default().finish(), "");
}
