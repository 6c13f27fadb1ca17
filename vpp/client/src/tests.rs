//! The client against a small scripted VPP.
