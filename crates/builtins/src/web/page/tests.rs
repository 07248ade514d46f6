//! Pages as they come, and what is read of them.

use super::*;

fn markdown(html: &str) -> String {
    page(html, Style::Markdown).text
}

fn page(html: &str, style: Style) -> Page {
    read(html, &Url::parse("https://x.org/a/b").unwrap(), style)
}

#[test]
fn elements() {
    let table = [
        ("<p>One\n two</p><p>three", "One two\n\nthree"),
        ("a<br>b<br/>c", "a\nb\nc"),
        (
            "<h1> A  title</h1>text<h3>B</h3>",
            "# A title\n\ntext\n\n### B",
        ),
        ("x &amp; y &lt;b&gt; &#x41;&nbsp;&eacute;", "x & y <b> A é"),
        (
            "<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e",
            "- a\n- b\n   - c\n- d\n\ne",
        ),
        ("<ol start=3><li>a</li><li>b</li></ol>", "3. a\n4. b"),
        (
            "see <a href='../c?d'>the  page</a>, ok",
            "see [the page](https://x.org/c?d), ok",
        ),
        (
            "<a href=//y.net><b>y</b> z </a>!",
            "[y z](https://y.net/) !",
        ),
        (
            "<a href='javascript:x()'>no</a> <a href='#f'>here</a> <a href='mailto:a@b'>m</a>",
            "no here m",
        ),
        ("<a href=x></a><a href=y> </a>z", "z"),
        ("<a href=x>open<p>end", "[open\n\nend](https://x.org/a/x)"),
        ("use <code>a  b</code> now", "use `a b` now"),
        (
            "<pre><code>fn a() {\n    b\n}\n</code></pre>c",
            "```\nfn a() {\n    b\n}\n```\n\nc",
        ),
        ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
        (
            "<blockquote><p>a</p><p>b</p></blockquote>c",
            "> a\n\n> b\n\nc",
        ),
        (
            "<table><thead><tr><th>a<th>b</tr></thead><tr><td>1</td><td>2</td></tr></table>",
            "| a | b |\n| --- | --- |\n| 1 | 2 |",
        ),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("<img alt='a cat' src=x><img src=y>", "[image: a cat]"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\nb\n\nc\nd"),
    ];
    for (html, want) in table {
        assert_eq!(markdown(html), want, "{html}");
    }
}

#[test]
fn plain_text_has_no_marks() {
    let html = "<h1>A</h1><p>see <a href=x>this</a> and <code>that</code><ul><li>b</ul><pre>c\n d</pre>\
        <table><tr><td>1<td>2</table>";
    assert_eq!(
        page(html, Style::Text).text,
        "A\n\nsee this and that\n\n- b\n\nc\n d\n\n1 | 2"
    );
}

#[test]
fn what_is_not_for_reading_is_left_out() {
    let table = [
        "<script>var a = '<p>evil</p>';</script>",
        "<style>evil</style>",
        "<!-- evil -->",
        "<template><p>evil</template>",
        "<div hidden>evil <div>evil</div> evil</div>",
        "<p style='Display : None'>evil</p>",
        "<span aria-hidden=true>evil</span>",
        "<noscript>evil</noscript>",
        "<svg><text>evil</text></svg>",
        "<iframe srcdoc='evil'>evil</iframe>",
        "<textarea>evil</textarea>",
        "<title>evil</title>",
        "<p title=evil data-x=evil onclick=evil></p>",
    ];
    for html in table {
        assert_eq!(
            markdown(&format!("<p>good</p>{html}<p>too</p>")),
            "good\n\ntoo",
            "{html}"
        );
    }
}

#[test]
fn a_title_is_short() {
    for (words, shown) in [
        ("x".repeat(512), "x".repeat(512)),
        ("ü".repeat(300), format!("{}…", "ü".repeat(256))),
    ] {
        assert_eq!(
            page(&format!("<title>{words}</title><p>text"), Style::Text).title,
            shown
        );
    }
}

#[test]
fn the_main_part_is_enough_when_there_is_one() {
    let text = "word ".repeat(60);
    let text = text.trim();
    let around = |inner: &str| {
        format!(
            "<title>T\n t</title><header>top</header><nav>menu</nav>{inner}<aside>ad</aside><footer>end</footer>"
        )
    };
    for name in ["main", "article"] {
        let page = page(
            &around(&format!("<{name}><nav>inner</nav><p>{text}</{name}>")),
            Style::Markdown,
        );
        assert_eq!(
            (page.title.as_str(), page.text.as_str()),
            ("T t", text),
            "{name}"
        );
    }
    assert_eq!(
        markdown(&around(&format!("<div><p>{text}</div>"))),
        format!("top\n\n{text}")
    );
    assert_eq!(
        markdown(&around("<main>short</main>")),
        "top\n\nmenu\n\nshort\n\nad\n\nend",
        "not believed"
    );
    // An element that never ends takes nothing along for good.
    assert_eq!(
        markdown("<nav><p>a page that is nothing but a menu"),
        "a page that is nothing but a menu"
    );
}

#[test]
fn whatever_comes_in_something_bounded_comes_out() {
    let deep = "<blockquote><ul><li>".repeat(2000);
    let link = format!("<a href='{}'>x</a>", "y".repeat(400));
    let cases = [
        deep.clone() + "x",
        "<div>".repeat(10000),
        "</div></ul></a></pre>".repeat(1000),
        "<table><tr>".to_owned() + &"<td>".repeat(10000),
        link.repeat(1000),
        format!("<pre>{}", "`".repeat(30000)),
        "<".repeat(10000),
        "&".repeat(10000),
        format!("<p {}>x", "a=b ".repeat(5000)),
        "<ol start=4294967295><li>a<li>b".to_owned(),
        "\u{0}<p\u{0}>\u{fffd}".to_owned(),
    ];
    for html in cases {
        let page = page(&html, Style::Markdown);
        assert!(
            page.text.len() <= super::super::block::MAX_TEXT,
            "{}",
            &html[..20]
        );
    }
    let line = markdown(&deep.replace("<li>", "<li>x"));
    assert!(
        line.lines().all(|line| line.len() < 100),
        "indents are bounded"
    );
}
