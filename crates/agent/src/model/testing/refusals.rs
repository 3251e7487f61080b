//! What a refusal means.

use polyloop_session::Heal;

use super::Interface;
use crate::model::Failure;
use crate::model::api::Refused;

pub const LATER: Heal = Heal::Later { after_ms: None };

pub fn check_failure(failure: &Failure, heal: Heal, code: &str, message: &str) {
    assert_eq!((failure.heal, &*failure.fault.code), (heal, code), "{failure:?}");
    assert_eq!(&*failure.fault.message, message);
}

impl Interface {
    pub fn refused(&self, status: u16, body: &[u8], retry_after_ms: Option<u64>) -> Failure {
        self.api.refusal(&Refused { status, body, model: self.model, retry_after_ms })
    }

    /// Errors of whoever stands in front of the provider.
    pub fn check_errors_in_front(&self) {
        let page =
            "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1>";
        let cut = r#"{"type":"error","error":{"type":"api_error","mess"#;
        let cases: [(u16, &[u8], &str); 5] = [
            (502, page.as_bytes(), "(502: 502 Bad Gateway 502 Bad Gateway)"),
            (500, b"", "(500)"),
            (503, b"\xff\xfe", "(503: \u{fffd}\u{fffd})"),
            (500, cut.as_bytes(), &format!("(500: {cut})")),
            (500, br#"{"error": "bad gateway"}"#, "(500: bad gateway)"),
        ];
        for (status, body, told) in cases {
            let told = format!("{} has trouble {told}", self.api.provider());
            check_failure(&self.refused(status, body, None), LATER, "provider_error", &told);
        }
        for (body, words) in
            [(r#"{"error":"no such route"}"#, "no such route"), (r#"{"message":"gone"}"#, "gone")]
        {
            let failure = self.refused(404, body.as_bytes(), None);
            assert!(failure.fault.message.ends_with(&format!("(404: {words})")), "{failure:?}");
        }
    }
}
