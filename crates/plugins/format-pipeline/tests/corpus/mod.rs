//! 2,000 results of 30 tools, as such tools write them: APIs without spaces and with every field, MCP servers indented by
//! two spaces. The shapes follow the vendors' documentation; the words are generated, the same ones each time.

use std::fmt::Write;

/// One generated result.
pub(crate) struct Sample {
    pub(crate) tool: &'static str,
    /// As the vendor or server sends it.
    pub(crate) sent: String,
}

/// Numbers of a fixed sequence.
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }
}

const WORDS: &[&str] = &[
    "login",
    "fails",
    "after",
    "update",
    "the",
    "button",
    "on",
    "settings",
    "page",
    "does",
    "not",
    "respond",
    "when",
    "user",
    "has",
    "two",
    "accounts",
    "timeout",
    "in",
    "worker",
    "queue",
    "retry",
    "memory",
    "grows",
    "with",
    "each",
    "request",
    "crash",
    "at",
    "start",
    "missing",
    "translation",
    "для",
    "кнопки",
    "größe",
    "fehlt",
    "docs",
    "link",
    "broken",
    "add",
    "support",
    "of",
    "new",
    "format",
    "export",
    "slow",
    "large",
    "files",
];
const NAMES: &[&str] = &[
    "ada", "grace-h", "linus", "margaret", "dennis_r", "barbara", "ken", "frances",
];

fn words(dice: &mut Dice, count: usize) -> String {
    let all: Vec<&str> = (0..count).map(|_| WORDS[dice.next(WORDS.len())]).collect();
    all.join(" ")
}

fn time(dice: &mut Dice) -> String {
    let month = 1 + dice.next(12);
    let day = 1 + dice.next(28);
    let hour = dice.next(24);
    format!(
        "2026-{month:02}-{day:02}T{hour:02}:{:02}:{:02}Z",
        dice.next(60),
        dice.next(60)
    )
}

fn hex(dice: &mut Dice, digits: usize) -> String {
    (0..digits)
        .map(|_| char::from(b"0123456789abcdef"[dice.next(16)]))
        .collect()
}

/// What a letter of a tool's pattern stands for: the names and values of fields.
fn field(kind: char, dice: &mut Dice, i: usize) -> String {
    let name = NAMES[dice.next(NAMES.len())];
    match kind {
        'i' => format!("\"id\":{}", 1_000_000_000 + dice.next(900_000_000)),
        'n' => format!("\"number\":{}", 100 + i),
        't' => format!("\"title\":\"{}\"", words(dice, 6)),
        's' => format!(
            "\"state\":\"{}\"",
            ["open", "closed", "merged"][dice.next(3)]
        ),
        'c' => format!("\"created_at\":\"{}\"", time(dice)),
        'u' => format!("\"updated_at\":\"{}\"", time(dice)),
        'z' => "\"closed_at\":null".to_owned(),
        'a' => format!(
            "\"user\":{{\"login\":\"{name}\",\"id\":{},\"avatar_url\":\"https://avatars.example.com/u/{}?v=4\",\"type\":\"User\",\"site_admin\":false}}",
            dice.next(99_999),
            dice.next(99_999)
        ),
        'A' => format!("\"author\":\"{name}\""),
        'l' => {
            let all: Vec<String> = (0..dice.next(3))
                .map(|_| format!("\"{}\"", words(dice, 1)))
                .collect();
            format!("\"labels\":[{}]", all.join(","))
        }
        'L' => {
            let all: Vec<String> = (0..dice.next(3))
                .map(|_| {
                    format!(
                        "{{\"id\":{},\"name\":\"{}\",\"color\":\"{}\"}}",
                        dice.next(9999),
                        words(dice, 1),
                        hex(dice, 6)
                    )
                })
                .collect();
            format!("\"labels\":[{}]", all.join(","))
        }
        'b' => format!(
            "\"body\":\"{}\\n\\n- {}\\n- {}\"",
            words(dice, 40),
            words(dice, 12),
            words(dice, 9)
        ),
        'h' => format!("\"sha\":\"{}\"", hex(dice, 40)),
        'w' => format!("\"html_url\":\"https://git.example.com/acme/widgets/issues/{i}\""),
        'p' => format!("\"path\":\"src/{}/{}.rs\"", words(dice, 1), words(dice, 1)),
        'k' => format!("\"count\":{}", dice.next(5000)),
        'f' => format!("\"score\":{}.{}", dice.next(100), 1 + dice.next(998)),
        'd' => format!("\"draft\":{}", dice.next(2) == 0),
        'm' => format!(
            "\"milestone\":{}",
            if dice.next(2) == 0 {
                "null".to_owned()
            } else {
                format!("{{\"title\":\"v{}\",\"due_on\":null}}", dice.next(9))
            }
        ),
        'T' => format!(
            "\"ts\":\"17{}.{:06}\"",
            10_000_000 + dice.next(80_000_000),
            dice.next(999_999)
        ),
        'x' => format!("\"text\":\"{}\"", words(dice, 14)),
        'r' => format!(
            "\"reactions\":{{\"+1\":{},\"-1\":0,\"laugh\":0,\"heart\":{}}}",
            dice.next(9),
            dice.next(3)
        ),
        'o' => {
            if dice.next(3) == 0 {
                format!("\"assignee\":\"{name}\"")
            } else {
                String::new()
            }
        }
        'g' => format!(
            "\"location\":{{\"lat\":{}.{},\"lon\":{}.{}}}",
            dice.next(80),
            1 + dice.next(9998),
            dice.next(170),
            1 + dice.next(9998)
        ),
        other => panic!("{other}"),
    }
}

/// Name of the tool, fields of an item, how the list is wrapped, whether the result is indented, most items.
const TOOLS: &[(&str, &str, &str, bool, usize)] = &[
    ("github issues", "intsaLzcumbrw", "@", false, 30),
    (
        "github search",
        "intsaLcubw",
        "{\"total_count\":812,\"incomplete_results\":false,\"items\":@}",
        false,
        30,
    ),
    ("github pulls", "intsadcuhw", "@", false, 30),
    ("github commits", "hAxcw", "@", false, 50),
    ("github releases", "itdcbw", "@", false, 10),
    ("github files", "hpks", "@", false, 60),
    ("gitlab issues", "intsAlcuzw", "@", false, 40),
    ("gitlab jobs", "isckfhw", "@", false, 40),
    (
        "jira search",
        "itsuAlo",
        "{\"issues\":@,\"nextPageToken\":\"CAEaAggC\",\"isLast\":false}",
        false,
        50,
    ),
    ("jira users", "iAd", "@", false, 50),
    (
        "clickup tasks",
        "itscuAlo",
        "{\"tasks\":@,\"last_page\":true}",
        false,
        60,
    ),
    (
        "slack history",
        "TAx",
        "{\"ok\":true,\"messages\":@,\"has_more\":true,\"response_metadata\":{\"next_cursor\":\"bmV4dF90czo=\"}}",
        false,
        60,
    ),
    (
        "slack channels",
        "itckd",
        "{\"ok\":true,\"channels\":@}",
        false,
        60,
    ),
    (
        "fireflies",
        "itcAx",
        "{\"data\":{\"transcripts\":@}}",
        false,
        20,
    ),
    ("mcp issues", "ntsAlcuw", "@", true, 30),
    ("mcp issue", "intsaLcubw", "@0", true, 1),
    ("mcp files", "pkud", "{\"files\":@}", true, 80),
    (
        "mcp rows",
        "iAckfd",
        "{\"rows\":@,\"rowCount\":40}",
        true,
        80,
    ),
    (
        "mcp search",
        "twxf",
        "{\"query\":\"retry\",\"results\":@}",
        true,
        15,
    ),
    ("mcp users", "iAcd", "@", true, 50),
    ("mcp places", "tgf", "{\"places\":@}", true, 40),
    (
        "mcp events",
        "itcux",
        "{\"events\":@,\"timeZone\":\"Europe/Berlin\"}",
        true,
        30,
    ),
    ("mcp metrics", "cfk", "{\"series\":@}", true, 120),
    ("mcp logs", "csx", "{\"entries\":@}", true, 60),
    ("mcp commits", "hAxc", "@", true, 30),
    ("mcp comments", "iAxc", "@", true, 30),
    ("mcp packages", "tkcdo", "{\"packages\":@}", true, 40),
    ("mcp metadata", "intscuwkd", "@0", true, 1),
    (
        "mcp tree",
        "phk",
        "{\"sha\":\"5f2c\",\"truncated\":false,\"tree\":@}",
        true,
        100,
    ),
    (
        "mcp status",
        "sckf",
        "{\"status\":\"ok\",\"checks\":@}",
        true,
        12,
    ),
];

pub(crate) fn samples(count: usize) -> Vec<Sample> {
    assert_eq!(TOOLS.len(), 30);
    let mut dice = Dice(7);
    (0..count)
        .map(|at| {
            let (tool, fields, wrap, is_indented, most) = TOOLS[at % TOOLS.len()];
            let items: Vec<String> = (0..1 + dice.next(most))
                .map(|i| {
                    let all = fields.chars().map(|kind| field(kind, &mut dice, i));
                    let all: Vec<String> = all.filter(|text| !text.is_empty()).collect();
                    format!("{{{}}}", all.join(","))
                })
                .collect();
            let list = match wrap {
                "@0" => items[0].clone(),
                wrap => wrap.replace('@', &format!("[{}]", items.join(","))),
            };
            let sent = if is_indented { indented(&list) } else { list };
            Sample { tool, sent }
        })
        .collect()
}

/// JSON with a line for each value, indented by two spaces.
fn indented(text: &str) -> String {
    let mut out = String::new();
    let mut depth = 0;
    let mut in_text = false;
    let mut before = ' ';
    for c in text.chars() {
        let line = |out: &mut String, depth: usize| write!(out, "\n{:1$}", "", 2 * depth).unwrap();
        if c == '"' && before != '\\' {
            in_text = !in_text;
        }
        match c {
            '[' | '{' if !in_text => {
                depth += 1;
                out.push(c);
                line(&mut out, depth);
            }
            ']' | '}' if !in_text => {
                depth -= 1;
                if matches!(before, '[' | '{') {
                    out.truncate(out.trim_end().len());
                } else {
                    line(&mut out, depth);
                }
                out.push(c);
            }
            ',' if !in_text => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' if !in_text => out.push_str(": "),
            c => out.push(c),
        }
        before = c;
    }
    out
}
