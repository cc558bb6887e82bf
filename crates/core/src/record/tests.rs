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

/// Covers: G14, M13
#[test]
fn g14_the_form_of_delivery_is_in_the_records_and_was_not_always() {
    for form in [Delivery::Task, Delivery::Note, Delivery::Poll] {
        let mut request: Request = serde_json::from_str(OLD_REQUEST).expect("a request of before");
        assert_eq!(request.delivery, Delivery::Task, "what nobody chose wakes");
        request.delivery = form;
        let exit = ExitRecord::draft(&request, &OsText::from("sh"));
        let exit: ExitRecord =
            serde_json::from_value(serde_json::to_value(exit).expect("data")).expect("its own shape");
        let request: Request =
            serde_json::from_value(serde_json::to_value(request).expect("data")).expect("its own shape");
        assert_eq!((exit.delivery, request.delivery), (form, form));
    }
}

/// What version 1 wrote before there was a form of delivery.
const OLD_REQUEST: &str = r#"{"id":"wrk_0190a0b0c0d07000800000000000000b","session":"ses_0190a0b0c0d07000800000000000000a",
    "argv":["sh"],"cwd":"/tmp","env":[],"grace_ms":null,"stop_grace_ms":2000,"hold":16384,"label":null,
    "consumer":"model","trust":"trusted"}"#;
