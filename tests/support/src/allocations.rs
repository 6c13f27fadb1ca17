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
}

/// The system's allocator, counted. Growing in place or elsewhere counts as well, giving back does not.
#[derive(Debug)]
pub struct Counting;

fn count() {
    // A thread that ends has no count any more, and nobody who asks for it.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to `System` with the arguments that it came with, so that what it promises is promised here; the
// count is a number in a `Cell` of the thread, which neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise about `layout` is the one that `System` wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: `block` came from `System` with this layout, as all blocks do, and the caller promises the rest.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
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
