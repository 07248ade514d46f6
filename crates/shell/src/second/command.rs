//! Lists, pipelines and commands of the second reading. Programs are not known.

use super::{DESCRIPTOR, Reader, Reading, is_name};

/// Words that end a list.
const CLOSING: [&str; 8] = ["}", "then", "elif", "else", "fi", "do", "done", "esac"];

/// Words that begin what is no simple command.
const OPENING: [&str; 12] = [
    "{", "if", "while", "until", "for", "select", "case", "[[", "function", "coproc", "time", "!",
];

impl Reader<'_> {
    /// Whether nothing more of a list can come.
    fn at_end(&self) -> bool {
        match self.peek() {
            None | Some(')') => true,
            Some(';') => matches!(self.after(1), Some(';' | '&')),
            Some(_) => CLOSING.contains(&self.raw_word().as_str()),
        }
    }

    /// Commands up to what closes them, which is left. Whether there were any.
    pub(super) fn list(&mut self) -> Option<bool> {
        let mut any = false;
        loop {
            self.gap()?;
            if self.at_end() {
                return Some(any);
            }
            self.and_or()?;
            any = true;
            self.blanks()?;
            match self.peek() {
                Some('\n' | '#') => {}
                Some(';') if !self.at_end() => self.at += 1,
                Some('&') if self.after(1) != Some('&') => self.at += 1,
                _ if self.at_end() => return Some(true),
                _ => return None,
            }
        }
    }

    fn commands(&mut self) -> Option<()> {
        self.list()?.then_some(())
    }

    fn and_or(&mut self) -> Option<()> {
        loop {
            self.pipeline()?;
            self.blanks()?;
            if !self.take("&&") && !self.take("||") {
                return Some(());
            }
            self.gap()?;
        }
    }

    fn pipeline(&mut self) -> Option<()> {
        loop {
            match self.raw_word().as_str() {
                "!" => self.at += 1,
                "time" => {
                    self.at += 4;
                    self.blanks()?;
                    if self.raw_word() == "-p" {
                        self.at += 2;
                    }
                }
                _ => break,
            }
            self.blanks()?;
        }
        loop {
            self.nested(Self::command)?;
            self.blanks()?;
            if self.starts("||") {
                return Some(());
            }
            if self.take("|&") {
                // The same as `2>&1 |`, for whatever was read last.
                self.found.last_mut()?.redirections.push(DESCRIPTOR);
            } else if !self.take("|") {
                return Some(());
            }
            self.gap()?;
            // Here `time` is the program of this name, with options of its own.
            if self.raw_word() == "!" {
                return None;
            }
        }
    }

    fn command(&mut self) -> Option<()> {
        match self.raw_word().as_str() {
            "" if self.take("((") => self.numbers()?,
            "" if self.take("(") => {
                self.commands()?;
                self.expect(")")?;
            }
            "{" => self.group()?,
            "if" => self.branches()?,
            "while" | "until" => {
                self.at += 5;
                self.commands()?;
                self.body()?;
            }
            "for" => self.named_loop(3)?,
            "select" => self.named_loop(6)?,
            "case" => self.case()?,
            "[[" => self.condition()?,
            "function" => return self.function(),
            "coproc" => {
                self.at += 6;
                self.blanks()?;
                let word = self.raw_word();
                // In a substitution bash 5.2 writes the command out anew, with a name in front that it then runs.
                let simple = !OPENING.contains(&word.as_str()) && self.peek() != Some('(');
                return (simple && self.inside == 0)
                    .then(|| self.simple())
                    .flatten();
            }
            word if CLOSING.contains(&word) => return None,
            _ => return self.simple(),
        }
        self.redirections()
    }

    fn redirections(&mut self) -> Option<()> {
        let mut reading = Reading::default();
        loop {
            self.blanks()?;
            if !self.at_redirection() {
                break;
            }
            self.redirection(&mut reading)?;
        }
        if !reading.redirections.is_empty() {
            self.found.push(reading);
        }
        Some(())
    }

    fn group(&mut self) -> Option<()> {
        self.reserved("{")?;
        self.commands()?;
        self.reserved("}")
    }

    fn branches(&mut self) -> Option<()> {
        self.reserved("if")?;
        loop {
            self.commands()?;
            self.reserved("then")?;
            self.commands()?;
            match self.raw_word().as_str() {
                "elif" => self.at += 4,
                "else" => {
                    self.at += 4;
                    self.commands()?;
                    return self.reserved("fi");
                }
                _ => return self.reserved("fi"),
            }
        }
    }

    fn body(&mut self) -> Option<()> {
        self.reserved("do")?;
        self.commands()?;
        self.reserved("done")
    }

    /// `for` and `select`.
    fn named_loop(&mut self, keyword: usize) -> Option<()> {
        self.at += keyword;
        self.blanks()?;
        let name = self.raw_word();
        if !is_name(&name) {
            return None;
        }
        self.at += name.len();
        self.gap()?;
        if self.raw_word() == "in" {
            self.at += 2;
            loop {
                self.blanks()?;
                match self.peek() {
                    Some(';' | '\n') => break,
                    Some('#') => return None,
                    _ => self.word(false).map(drop)?,
                }
            }
        }
        if self.peek() == Some(';') {
            self.at += 1;
        }
        self.gap()?;
        self.body()
    }

    fn case(&mut self) -> Option<()> {
        self.at += 4;
        self.blanks()?;
        self.word(false)?;
        self.gap()?;
        self.reserved("in")?;
        self.gap()?;
        while self.raw_word() != "esac" {
            self.take("(");
            loop {
                self.blanks()?;
                self.word(false)?;
                self.blanks()?;
                if !self.take("|") {
                    break;
                }
            }
            self.expect(")")?;
            self.list()?;
            if !(self.take(";;&") || self.take(";;") || self.take(";&")) {
                break;
            }
            self.gap()?;
        }
        self.reserved("esac")
    }

    /// `[[ … ]]`: operators are skipped, only the words between them matter.
    fn condition(&mut self) -> Option<()> {
        self.reserved("[[")?;
        loop {
            self.gap()?;
            match self.peek()? {
                '<' | '>' if self.after(1) == Some('(') => return None,
                '(' | ')' | '<' | '>' => self.at += 1,
                '&' | '|' => (self.take("&&") || self.take("||")).then_some(())?,
                ';' => return None,
                _ => match self.raw_word().as_str() {
                    "]]" => return self.reserved("]]"),
                    "=~" => {
                        self.at += 2;
                        self.blanks()?;
                        self.pattern()?;
                    }
                    _ => self.word(false).map(drop)?,
                },
            }
        }
    }

    /// A regular expression, in which parentheses and bars are not operators.
    fn pattern(&mut self) -> Option<()> {
        if matches!(self.peek()?, '"' | '\'') {
            return self.word(false).map(drop);
        }
        let from = self.at;
        while let Some(c) = self.peek().filter(|c| !" \t\n".contains(*c)) {
            let opens =
                c == '$' && matches!(self.after(1), Some('(' | '{' | '[' | '\'' | '"' | '\\'));
            let escapes = c == '\\' && self.after(1).is_some_and(|next| !next.is_whitespace());
            if opens || !(escapes || c.is_alphanumeric() || "^$.*+?[]()|{}-_/:,@%#=~!".contains(c))
            {
                return None;
            }
            self.at += 1 + usize::from(escapes);
        }
        (self.at > from).then_some(())
    }

    fn function(&mut self) -> Option<()> {
        self.at += 8;
        self.blanks()?;
        let name = self.raw_word();
        self.at += name.chars().count();
        self.blanks()?;
        if self.take("(") {
            self.blanks()?;
            self.expect(")")?;
        }
        self.definition(&name)
    }

    /// What follows the name of a function: a group in braces or parentheses.
    fn definition(&mut self, name: &str) -> Option<()> {
        let plain = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
            && !name.is_empty();
        self.gap()?;
        let group =
            self.raw_word() == "{" || (self.peek() == Some('(') && self.after(1) != Some('('));
        (plain && group)
            .then(|| self.nested(Self::command))
            .flatten()
    }

    fn simple(&mut self) -> Option<()> {
        let mut reading = Reading::default();
        loop {
            self.blanks()?;
            if self.at_redirection() {
                self.redirection(&mut reading)?;
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')' | '#') => break,
                Some('(') => {
                    let [Some(name)] = reading.words.as_slice() else {
                        return None;
                    };
                    let alone = reading.assignments.is_empty() && reading.redirections.is_empty();
                    let name = name.clone();
                    self.at += 1;
                    self.blanks()?;
                    self.expect(")")?;
                    return alone.then(|| self.definition(&name)).flatten();
                }
                Some(_) => {}
            }
            let declares = matches!(
                reading.words.first(),
                Some(Some(name)) if matches!(name.as_str(), "declare" | "typeset" | "local" | "export" | "readonly")
            );
            let word = self.word(declares || reading.words.is_empty())?;
            match word.sets() {
                Some(name) if reading.words.is_empty() => reading.assignments.push(name),
                _ => {
                    let literal = word.literal();
                    let reserved = |word: &str| CLOSING.contains(&word) || OPENING.contains(&word);
                    // Bash writes a substitution and an exported function anew before it runs them, redirections last: what
                    // stood behind one is a reserved word then.
                    let moves = word.continued || !reading.redirections.is_empty();
                    if reading.words.is_empty() && moves && literal.as_deref().is_some_and(reserved)
                    {
                        return None;
                    }
                    reading.words.push(literal);
                }
            }
        }
        let empty = reading == Reading::default();
        self.found.push(reading);
        (!empty).then_some(())
    }
}
