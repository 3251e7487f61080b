use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::super::html::read;
use super::*;

fn shown(html: &str) -> String {
    write(read(html), &Url::parse("https://example.org/a/b").unwrap())
}

#[test]
fn pages_are_written_as_markdown() {
    for (html, want) in [
        ("", ""),
        (" \n ", ""),
        ("one\n two<br>three", "one two\nthree\n"),
        ("<title> A &amp; B </title><h2>C <b>d</b></h2>e", "Title: A & B\n\n## C **d**\n\ne\n"),
        ("<p>a</p><p></p><div><p>b</p></div>c", "a\n\nb\n\nc\n"),
        ("a<b> c </b>d<i></i><em> e</em>", "a **c** d *e*\n"),
        ("<b>a<i>b</b>c</i>", "**a*b***c\n"),
        (
            "<code>a  b</code> <pre>\n  c\n\n\n  <b>d</b>\n</pre>e",
            "`a b`\n\n```\n  c\n\n\n  **d**\n```\n\ne\n",
        ),
        (
            "<ul><li>a<li><p>b</p><p>c</p><li>d<ol start=9><li>e<li>f</ol></ul>g",
            "- a\n- b\n\n  c\n\n- d\n  9. e\n  10. f\n\ng\n",
        ),
        ("<blockquote>a<br>b<p>c</blockquote>d", "> a\n> b\n>\n> c\n\nd\n"),
        (
            "<a href=c>x</a> <a href='/d?e=1&amp;f'>y <b>z</b></a>",
            "[x](https://example.org/a/c) [y **z**](https://example.org/d?e=1&f)\n",
        ),
        ("<base href='//other.org/x/'><a href=y(z)>a</a>", "[a](https://other.org/x/y%28z%29)\n"),
        ("<a href=#x>a</a><a href=javascript:b>c</a><a href=d></a><a>e</a>", "ace\n"),
        ("<a href=b>c<a href=d>e", "[c](https://example.org/a/b)[e](https://example.org/a/d)\n"),
        (
            "<img src=a><img alt='b  c' src=d><img alt=e src=data:x>",
            "![b c](https://example.org/a/d)![e]\n",
        ),
        (
            "<table><tr><th>a<th>b<tr><td><p>c</p><p>d</p></td><td></td><td>e</table>f",
            "| a | b\n| c d |  | e\n\nf\n",
        ),
        ("<dl><dt>a<dd>b<dd>c</dl>", "a\n: b\n: c\n"),
        ("a<hr>b", "a\n\n---\n\nb\n"),
        ("<head><style>a</style><script>b</script></head>c<noscript>d</noscript>", "cd\n"),
        ("a<svg><title>b</title><g/><text>c</svg>d<template><p>e</template>f", "adf\n"),
        ("<form>a <input value=b><select><option>c</select><button>d</button></form>e", "a\n\ne\n"),
        ("<div>a<button>b</div>c", "a\n\nc\n"),
        ("&lt;b&gt;", "<b>\n"),
        ("<h1></h1><h2><img></h2>a", "a\n"),
    ] {
        assert_eq!(shown(html), want, "{html}");
    }
}

/// Each of these would cost time or stack if the page were a tree, or grow without end.
#[test]
fn hostile_pages_cost_what_they_weigh() {
    let begun = worked();
    for part in [
        "<div>",
        "<b>",
        "<a href=x>",
        "<ul><li>",
        "<blockquote>",
        "<table><tr><td>",
        "<p><b><i>",
        "<svg>",
        "<template><b>",
        "<pre>\n",
        "</div>",
        "</b></i>",
        "<button>",
        "<a b",
        "<a b=",
        "&",
        "&amp",
        "&#",
        "<",
        "<!--",
        "<script>",
        "<li><br>x",
        "<title>",
        "</",
        "<a href='",
        "\u{0}",
        "<blockquote>x<br>",
        "<ol><li>x",
        "<x a=1 b=2 ",
        "<dd>",
        "<td>",
        "<select><x>",
    ] {
        let page = part.repeat(2 * 1024 * 1024 / part.len());
        let text = shown(&page);
        assert!(text.len() <= TEXT_BYTES_MAX + 1_024, "{part}: {}", text.len());
    }
    let deep = format!("{}deep{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
    assert_eq!(shown(&deep), "deep\n");
    // Minutes, if one of them took the square of its length.
    let took = worked() - begun;
    assert!(took < Duration::from_secs(60), "{took:?}");
}

/// Processor time of this thread: what others do on the machine is not counted.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

proptest::proptest! {
    #[test]
    fn no_page_breaks_it(
        html in "(<(/)?(b|a href=x|ul|ol|li|pre|blockquote|table|tr|td|h1|p|br|title|svg|dd|code)>\
                 |é| |\n|x)*"
    ) {
        let text = shown(&html);
        proptest::prop_assert!(text.is_empty() || text.ends_with('\n'));
    }
}
