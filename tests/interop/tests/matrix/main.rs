//! The interop matrix: the same cells for each daemon. `tests/README.md` shows it as a table, which
//! [`cells::every_cell_is_tested_or_listed`] holds against this file.

mod cells;
mod end;
mod exchange;
mod feeder;
mod old_as;
mod pair;
mod refresh;
mod restart;
mod session;

/// Makes a test of each cell for each daemon that can do it: `bird::exchange_ebgp` and so on.
macro_rules! cells {
    ($($daemon:ident $kind:ident: $($module:ident::$cell:ident)*;)*) => {
        $(
            mod $daemon {
                $(
                    #[test]
                    fn $cell() {
                        crate::cells::run(interop::daemon::Kind::$kind, stringify!($cell), crate::$module::$cell);
                    }
                )*
            }
        )*

        /// Each test by its daemon and its cell.
        pub(crate) const TESTED: &[(interop::daemon::Kind, &str)] =
            &[$($((interop::daemon::Kind::$kind, stringify!($cell)),)*)*];
    };
}

cells! {
    bird Bird:
        session::over_ipv4 session::over_ipv6 session::both_families_over_one session::md5
        exchange::exchange_ebgp exchange::exchange_ibgp exchange::withdrawal
        refresh::our_refresh refresh::refresh refresh::enhanced_refresh
        restart::they_restart restart::restart_time restart::we_restart
        end::hold_time end::notification end::ttl_security old_as::two_octet_as;
    frr Frr:
        session::over_ipv4 session::over_ipv6 session::both_families_over_one session::md5
        exchange::exchange_ebgp exchange::exchange_ibgp exchange::withdrawal
        refresh::our_refresh refresh::refresh refresh::enhanced_refresh
        restart::they_restart restart::restart_time restart::we_restart
        end::hold_time end::notification end::ttl_security;
    gobgp Gobgp:
        session::over_ipv4 session::over_ipv6 session::both_families_over_one session::md5
        exchange::exchange_ebgp exchange::exchange_ibgp exchange::withdrawal
        refresh::our_refresh
        restart::they_restart restart::restart_time restart::we_restart
        end::hold_time end::notification end::ttl_security;
    openbgpd Openbgpd:
        session::over_ipv4 session::over_ipv6 session::both_families_over_one session::md5
        exchange::exchange_ebgp exchange::exchange_ibgp exchange::withdrawal
        refresh::our_refresh refresh::refresh refresh::enhanced_refresh
        restart::we_restart
        end::hold_time end::notification end::ttl_security old_as::two_octet_as;
    exabgp Exabgp:
        session::over_ipv4 session::over_ipv6 session::both_families_over_one session::md5
        exchange::exchange_ebgp exchange::exchange_ibgp exchange::withdrawal
        refresh::refresh
        restart::they_restart restart::restart_time
        end::hold_time end::notification end::ttl_security old_as::two_octet_as;
}
