//! A global allocator that counts what each thread asks of it.
//!
//! A test binary makes it its allocator, and then asks how often a piece of code has allocated:
//!
//! ```ignore
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//! let (result, allocations) = counted(|| work());
//! ```

#![allow(unsafe_code, reason = "GlobalAlloc; it passes on what it is asked, see the proofs")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, counted. Growing in place or elsewhere counts as well, giving back does not.
#[derive(Debug)]
pub struct Counting;

fn count() {
    // A thread that ends has no count any more, and nobody who asks for it.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

/// So many octets more, or less.
fn hold(octets: usize, sign: i64) {
    // No allocation reaches half the address space.
    let _ = HELD.try_with(|held| held.set(held.get() + sign * octets as i64));
}

// SAFETY: every call goes to `System` with the arguments that it came with, so that what it promises is promised here; the
// count is a number in a `Cell` of the thread, which neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        hold(layout.size(), 1);
        // SAFETY: the caller's promise about `layout` is the one that `System` wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        hold(layout.size(), 1);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        hold(layout.size(), -1);
        hold(size, 1);
        // SAFETY: `block` came from `System` with this layout, as all blocks do, and the caller promises the rest.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        hold(layout.size(), -1);
        // SAFETY: as for `realloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Runs something, and says how often this thread has allocated meanwhile. Always 0 where [`Counting`] is not the
/// allocator.
pub fn counted<T>(what: impl FnOnce() -> T) -> (T, u64) {
    let before = COUNT.get();
    let result = what();
    (result, COUNT.get() - before)
}

/// Runs something, and says how many octets more this thread holds after it: what it allocated less what it gave back. Always
/// 0 where [`Counting`] is not the allocator.
pub fn retained<T>(what: impl FnOnce() -> T) -> (T, i64) {
    let before = HELD.get();
    let result = what();
    (result, HELD.get() - before)
}
