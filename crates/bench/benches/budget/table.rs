//! The table as text.

/// Rows in the order they were measured.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<[String; 5]>);

impl Table {
    /// A figure with a budget in the same unit.
    pub(crate) fn figure(&mut self, what: &str, value: f64, unit: &str, most: Option<f64>) {
        let limit = most.map_or_else(|| "–".to_owned(), |most| format!("≤ {most} {unit}"));
        self.row(
            what,
            format!("{value:.2} {unit}"),
            "–".to_owned(),
            limit,
            most.map(|most| value <= most),
        );
    }

    /// A figure beside its floor; the budget is of their ratio.
    pub(crate) fn ratio(
        &mut self,
        what: &str,
        (value, floor): (f64, f64),
        unit: &str,
        most: Option<f64>,
    ) {
        let ratio = value / floor;
        let limit = most.map_or_else(|| "–".to_owned(), |most| format!("≤ {most} ×"));
        let shown = format!("{ratio:.3} × ({value:.3} {unit})");
        self.row(
            what,
            shown,
            format!("{floor:.3} {unit}"),
            limit,
            most.map(|most| ratio <= most),
        );
    }

    /// A figure beside its floor; the budget is of their difference.
    pub(crate) fn added(&mut self, what: &str, (value, floor): (f64, f64), unit: &str, most: f64) {
        let added = value - floor;
        let shown = format!("+{added:.3} {unit} ({value:.3} {unit})");
        self.row(
            what,
            shown,
            format!("{floor:.3} {unit}"),
            format!("≤ +{most} {unit}"),
            Some(added <= most),
        );
    }

    fn row(&mut self, what: &str, value: String, floor: String, limit: String, held: Option<bool>) {
        let held = match held {
            Some(true) => "held",
            Some(false) => "MISSED",
            None => "",
        };
        self.0
            .push([what.to_owned(), value, floor, limit, held.to_owned()]);
    }

    pub(crate) fn print(&self) {
        let heads = ["what", "measured", "floor", "budget", ""].map(str::to_owned);
        let width = |at: usize| {
            let cells = self.0.iter().chain([&heads]);
            cells.map(|row| row[at].chars().count()).max().unwrap_or(0)
        };
        let rule = [0, 1, 2, 3, 4].map(|at| "-".repeat(width(at).max(3)));
        for row in [&heads, &rule].into_iter().chain(&self.0) {
            let cells = row
                .iter()
                .enumerate()
                .map(|(at, cell)| format!("{cell:<width$}", width = width(at).max(3)));
            println!("| {} |", cells.collect::<Vec<_>>().join(" | "));
        }
    }
}
