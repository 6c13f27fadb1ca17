//! The three macros that declare what is on the wire. Each yields the struct, with its zerocopy derives, and
//! its description for the catalogue test, from one list of fields.

/// Newtypes of big-endian integers, with the values that have names: `pub struct IfType: u32 { HARDWARE = 0, }`.
/// Values without a name are kept as they come.
macro_rules! wire_int {
    ($( $(#[$meta:meta])* $vis:vis struct $name:ident : $int:tt { $( $(#[$vmeta:meta])* $value:ident = $number:literal ),* $(,)? } )*) => { $(
        $(#[$meta])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout, zerocopy::Immutable, zerocopy::Unaligned,
        )]
        #[repr(transparent)]
        $vis struct $name(wire_int!(@storage $int));

        impl $name {
            $( $(#[$vmeta])* pub const $value: Self = Self::new($number); )*

            /// From a number in host order.
            #[must_use]
            pub const fn new(value: $int) -> Self {
                Self(wire_int!(@store $int value))
            }

            /// The number in host order.
            #[must_use]
            pub const fn value(self) -> $int {
                wire_int!(@load $int self)
            }
        }

        impl From<$int> for $name {
            fn from(value: $int) -> Self {
                Self::new(value)
            }
        }

        impl From<$name> for $int {
            fn from(value: $name) -> $int {
                value.value()
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.value())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.value(), f)
            }
        }

        impl $crate::layout::Described for $name {
            const SHAPE: $crate::layout::Shape = wire_int!(@shape $int [ $( (stringify!($value), $number) ),* ]);
        }
    )* };
    (@storage u8) => { u8 };
    (@storage u16) => { zerocopy::big_endian::U16 };
    (@storage u32) => { zerocopy::big_endian::U32 };
    (@store u8 $v:ident) => { $v };
    (@store u16 $v:ident) => { zerocopy::big_endian::U16::new($v) };
    (@store u32 $v:ident) => { zerocopy::big_endian::U32::new($v) };
    (@load u8 $s:ident) => { $s.0 };
    (@load u16 $s:ident) => { $s.0.get() };
    (@load u32 $s:ident) => { $s.0.get() };
    (@shape $int:tt []) => { $crate::layout::Shape::Unsigned(size_of::<$int>()) };
    (@shape $int:tt [ $($values:tt)+ ]) => {
        $crate::layout::Shape::Named { width: size_of::<$int>(), values: &[ $($values)+ ] }
    };
}

/// Packed structures that stand inside messages. What varies in size comes last, behind `..`: an array with the field
/// that counts it, `.. pub paths: [FibPath] by n_paths`, or another structure that ends in one, `.. pub route: (IpRoute)`
/// (without the parentheses where it is a plain name).
macro_rules! wire_struct {
    ($( $(#[$meta:meta])* pub struct $name:ident {
        $( $(#[$fmeta:meta])* $fvis:vis $field:ident : $ftype:ty, )*
        $( .. $(#[$tmeta:meta])* $tvis:vis $tail:ident : $ttype:tt $( by $count:ident )? )?
    } )*) => { $(
        wire_struct! { @one [ $( .. $tail )? ] $(#[$meta])* $name
            [ $( $(#[$fmeta])* $fvis $field : $ftype, )* ]
            $( [ $(#[$tmeta])* $tvis $tail : $ttype $( by $count )? ] )? }
    )* };

    (@one [] $(#[$meta:meta])* $name:ident [ $( $(#[$fmeta:meta])* $fvis:vis $field:ident : $ftype:ty, )* ]) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout, zerocopy::Immutable, zerocopy::Unaligned,
        )]
        #[repr(C)]
        pub struct $name {
            $( $(#[$fmeta])* $fvis $field: $ftype, )*
        }
        wire_struct! { @described $name None;
            $( (stringify!($field), <$ftype as $crate::layout::Described>::SHAPE) )* }
    };

    (@one [ .. $t:ident ] $(#[$meta:meta])* $name:ident [ $( $(#[$fmeta:meta])* $fvis:vis $field:ident : $ftype:ty, )* ]
     [ $(#[$tmeta:meta])* $tvis:vis $tail:ident : [ $element:ty ] by $count:ident ]) => {
        $(#[$meta])*
        #[derive(
            Debug, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout, zerocopy::Immutable, zerocopy::Unaligned,
        )]
        #[repr(C)]
        pub struct $name {
            $( $(#[$fmeta])* $fvis $field: $ftype, )*
            $(#[$tmeta])* $tvis $tail: [$element],
        }
        wire_struct! { @described $name
            Some($crate::layout::Tail {
                name: stringify!($tail),
                element: <$element as $crate::layout::Described>::SHAPE,
                count: stringify!($count),
            });
            $( (stringify!($field), <$ftype as $crate::layout::Described>::SHAPE) )* }
        impl $crate::message::Tailed for $name {
            const FIXED: usize = $crate::layout::total(Self::FIELDS);
            const ELEMENT: usize = size_of::<$element>();
            const COUNT_AT: usize = $crate::layout::field(Self::FIELDS, stringify!($count)).at;
            const COUNT_WIDTH: usize = $crate::layout::field(Self::FIELDS, stringify!($count)).shape.size();
        }
    };
    (@one [ .. $t:ident ] $(#[$meta:meta])* $name:ident [ $($fields:tt)* ]
     [ $(#[$tmeta:meta])* $tvis:vis $tail:ident : $inner:ident ]) => {
        wire_struct! { @one [ .. $t ] $(#[$meta])* $name [ $($fields)* ] [ $(#[$tmeta])* $tvis $tail : ( $inner ) ] }
    };
    (@one [ .. $t:ident ] $(#[$meta:meta])* $name:ident [ $( $(#[$fmeta:meta])* $fvis:vis $field:ident : $ftype:ty, )* ]
     [ $(#[$tmeta:meta])* $tvis:vis $tail:ident : ( $inner:ty ) ]) => {
        $(#[$meta])*
        // `packed` changes nothing, as every field has alignment 1; it lets zerocopy see that there is no padding
        // in front of a tail of variable size.
        #[derive(
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout, zerocopy::Immutable, zerocopy::Unaligned,
        )]
        #[repr(C, packed)]
        pub struct $name {
            $( $(#[$fmeta])* $fvis $field: $ftype, )*
            $(#[$tmeta])* $tvis $tail: $inner,
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    $( .field(stringify!($field), &self.$field) )*
                    .field(stringify!($tail), &&self.$tail)
                    .finish()
            }
        }
        wire_struct! { @described $name None;
            $( (stringify!($field), <$ftype as $crate::layout::Described>::SHAPE) )*
            (stringify!($tail), <$inner as $crate::layout::Described>::SHAPE) }
        impl $crate::message::Tailed for $name {
            const FIXED: usize = $crate::layout::total(Self::FIELDS);
            const ELEMENT: usize = <$inner as $crate::message::Tailed>::ELEMENT;
            const COUNT_AT: usize = $crate::layout::field(Self::FIELDS, stringify!($tail)).at
                + <$inner as $crate::message::Tailed>::COUNT_AT;
            const COUNT_WIDTH: usize = <$inner as $crate::message::Tailed>::COUNT_WIDTH;
        }
    };

    (@described $name:ident $tail:expr; $( ( $($field:tt)* ) )*) => {
        impl $name {
            const FIELDS: &'static [$crate::layout::Field] = &$crate::layout::place([ $( ( $($field)* ) ),* ]);
        }
        impl $crate::layout::Described for $name {
            const SHAPE: $crate::layout::Shape = $crate::layout::Shape::Struct(&$crate::layout::Layout {
                name: stringify!($name),
                fixed: $crate::layout::total(Self::FIELDS),
                fields: Self::FIELDS,
                tail: $tail,
            });
        }
    };
}

/// Messages of one API module: `kind Name "vpp_name" crc (=> Answer (until Reply)) { fields }`. Kinds are `request`,
/// `dump`, `stream` (details and then a reply), `reply`, `details`, `notice`, and for the exceptions `hello` (`sockclnt_create`),
/// `plain_reply` (no return value), `greeting` (neither, and an echoed handle), `echo_reply` and `echo_details` (an echoed
/// handle), `unsent` and `unsent_dump` (never to be sent, so it has no role). What varies in size comes last, as in `wire_struct!`.
///
/// The name in front (`LIST;`) becomes the list of them.
macro_rules! messages {
    ($list:ident; $( $(#[$meta:meta])* $kind:ident $name:ident $text:literal $crc:literal $( => $answer:ident $( until $end:ident )? )? {
        $( $(#[$fmeta:meta])* $fvis:vis $field:ident : $ftype:ty, )*
        $( .. $(#[$tmeta:meta])* $tvis:vis $tail:ident : $ttype:tt $( by $count:ident )? )?
    } )*) => {
        /// The messages of this module, or those of one list of it.
        pub const $list: &[$crate::message::Descriptor] = &[ $( <$name as $crate::message::Message>::DESCRIPTOR ),* ];
        $(
            messages! { @head $kind $(#[$meta])* $name
                [ $( $(#[$fmeta])* $fvis $field : $ftype, )* $( .. $(#[$tmeta])* $tvis $tail : $ttype $( by $count )? )? ] }
            messages! { @described $kind $name $text $crc $( $answer $( $end )? )? }
            messages! { @parse [ $( .. $tail $( $count )? )? ] $name }
            messages! { @role $kind $name [ $( .. $tail )? ] $( $answer $( $end )? )? }
        )*
    };

    (@head request $($rest:tt)*) => { messages! { @fields RequestHead $($rest)* } };
    (@head unsent $($rest:tt)*) => { messages! { @fields RequestHead $($rest)* } };
    (@head unsent_dump $($rest:tt)*) => { messages! { @fields RequestHead $($rest)* } };
    (@head dump $($rest:tt)*) => { messages! { @fields RequestHead $($rest)* } };
    (@head stream $($rest:tt)*) => { messages! { @fields RequestHead $($rest)* } };
    (@head reply $($rest:tt)*) => { messages! { @fields ReplyHead $($rest)* } };
    (@head plain_reply $($rest:tt)*) => { messages! { @fields ReplyHead $($rest)* } };
    (@head details $($rest:tt)*) => { messages! { @fields ReplyHead $($rest)* } };
    (@head hello $($rest:tt)*) => { messages! { @fields ReplyHead $($rest)* } };
    (@head greeting $($rest:tt)*) => { messages! { @fields EchoHead $($rest)* } };
    (@head echo_reply $($rest:tt)*) => { messages! { @fields EchoHead $($rest)* } };
    (@head echo_details $($rest:tt)*) => { messages! { @fields EchoHead $($rest)* } };
    (@head notice $($rest:tt)*) => { messages! { @fields NoticeHead $($rest)* } };

    (@fields $head:ident $(#[$meta:meta])* $name:ident [ $($fields:tt)* ]) => {
        wire_struct! { $(#[$meta])* pub struct $name {
            /// What every message of this kind starts with.
            pub head: $crate::head::$head,
            $($fields)*
        } }
    };

    (@described $kind:ident $name:ident $text:literal $crc:literal $( $answer:ident $( $end:ident )? )?) => {
        impl $name {
            const DESCRIBED: $crate::message::Descriptor = $crate::message::Descriptor {
                name: $crate::name::MsgName::new($text, $crc),
                kind: messages!(@kind $kind),
                context_at: messages!(@context $kind),
                layout: $crate::message::layout_of::<Self>(),
                answer: messages!(@answer $( $answer )?),
                end: messages!(@answer $( $( $end )? )?),
                measure: $crate::message::measure::<Self>,
            };
        }
    };
    (@answer) => { None };
    (@answer $answer:ident) => { Some(<$answer as $crate::message::Message>::DESCRIPTOR.name) };
    (@kind request) => { $crate::message::Kind::Request };
    (@kind hello) => { $crate::message::Kind::Request };
    (@kind unsent) => { $crate::message::Kind::Request };
    (@kind dump) => { $crate::message::Kind::Dump };
    (@kind unsent_dump) => { $crate::message::Kind::Dump };
    (@kind stream) => { $crate::message::Kind::Stream };
    (@kind reply) => { $crate::message::Kind::Reply };
    (@kind plain_reply) => { $crate::message::Kind::Reply };
    (@kind greeting) => { $crate::message::Kind::Reply };
    (@kind echo_reply) => { $crate::message::Kind::Reply };
    (@kind details) => { $crate::message::Kind::Details };
    (@kind echo_details) => { $crate::message::Kind::Details };
    (@kind notice) => { $crate::message::Kind::Notice };
    (@context request) => { <$crate::head::RequestHead as $crate::head::Head>::CONTEXT_AT };
    (@context unsent) => { <$crate::head::RequestHead as $crate::head::Head>::CONTEXT_AT };
    (@context unsent_dump) => { <$crate::head::RequestHead as $crate::head::Head>::CONTEXT_AT };
    (@context stream) => { <$crate::head::RequestHead as $crate::head::Head>::CONTEXT_AT };
    (@context dump) => { <$crate::head::RequestHead as $crate::head::Head>::CONTEXT_AT };
    (@context notice) => { <$crate::head::NoticeHead as $crate::head::Head>::CONTEXT_AT };
    (@context greeting) => { <$crate::head::EchoHead as $crate::head::Head>::CONTEXT_AT };
    (@context echo_reply) => { <$crate::head::EchoHead as $crate::head::Head>::CONTEXT_AT };
    (@context echo_details) => { <$crate::head::EchoHead as $crate::head::Head>::CONTEXT_AT };
    (@context $other:ident) => { <$crate::head::ReplyHead as $crate::head::Head>::CONTEXT_AT };

    (@parse [] $name:ident) => {
        impl $crate::message::Message for $name {
            const DESCRIPTOR: $crate::message::Descriptor = Self::DESCRIBED;
            fn parse(payload: &[u8]) -> Result<&Self, $crate::message::ParseError> {
                $crate::message::parse_fixed(payload)
            }
        }
    };
    (@parse [ .. $($tail:tt)+ ] $name:ident) => {
        impl $crate::message::Message for $name {
            const DESCRIPTOR: $crate::message::Descriptor = Self::DESCRIBED;
            fn parse(payload: &[u8]) -> Result<&Self, $crate::message::ParseError> {
                $crate::message::parse_tailed(payload)
            }
        }
    };

    (@role request $name:ident [] $answer:ident) => {
        impl $crate::message::Request for $name {
            type Reply = $answer;
        }
    };
    (@role dump $name:ident [] $answer:ident) => {
        impl $crate::message::Dump for $name {
            type Details = $answer;
        }
    };
    (@role stream $name:ident [] $answer:ident $end:ident) => {
        impl $crate::message::Stream for $name {
            type Details = $answer;
            type End = $end;
            fn set_cursor(&mut self, cursor: u32) {
                self.cursor = cursor.into();
            }
        }
        impl $crate::message::Cursor for $end {
            fn cursor(&self) -> u32 {
                self.cursor.get()
            }
        }
    };
    (@role unsent $($rest:tt)*) => {};
    (@role unsent_dump $($rest:tt)*) => {};
    // A request with a variable part is written by a value of its own, which names its answer.
    (@role request $name:ident [ .. $t:ident ] $answer:ident) => {};
    (@role dump $name:ident [ .. $t:ident ] $answer:ident) => {};
    (@role reply $name:ident [ $($tail:tt)* ]) => {
        impl $crate::message::Reply for $name {
            fn retval(&self) -> $crate::retval::Retval {
                self.retval.into()
            }
        }
    };
    (@role echo_reply $name:ident [ $($tail:tt)* ]) => { messages! { @role reply $name [] } };
    (@role plain_reply $name:ident [ $($tail:tt)* ]) => {
        impl $crate::message::Reply for $name {
            fn retval(&self) -> $crate::retval::Retval {
                $crate::retval::Retval::OK
            }
        }
    };
    (@role hello $name:ident [] $answer:ident) => {};
    (@role greeting $name:ident [ $($tail:tt)* ]) => {};
    (@role details $name:ident [ $($tail:tt)* ]) => {};
    (@role echo_details $name:ident [ $($tail:tt)* ]) => {};
    (@role notice $name:ident []) => {
        impl $crate::message::Notice for $name {}
    };
}
