//! What old and new versions of stored records mean to each other.

use super::*;

/// Covers: M13
#[test]
fn m13_a_newer_schema_is_said_to_be_newer() {
    for (found, expected, check) in [
        ("outlast.exit/1", schema::EXIT, SchemaCheck::Known),
        ("outlast.exit/2", schema::EXIT, SchemaCheck::Newer),
        ("outlast.status/1", schema::EXIT, SchemaCheck::Foreign),
        ("outlast.exit/x", schema::EXIT, SchemaCheck::Foreign),
        ("", schema::EXIT, SchemaCheck::Foreign),
    ] {
        assert_eq!(check_schema(found, expected), check, "{found}");
    }
}
