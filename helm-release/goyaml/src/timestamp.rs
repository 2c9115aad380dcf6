//! Whether a text is a date or time in one of the forms Go tries.

/// `2006-1-2`, optionally with `T15:4:5Z`, `t15:4:5+07:00` or ` 15:4:5`; seconds may have a fraction.
pub(crate) fn is_timestamp(text: &str) -> bool {
    read_timestamp(&mut Rest(text.as_bytes())).unwrap_or(false)
}

fn read_timestamp(rest: &mut Rest<'_>) -> Option<bool> {
    let year = rest.year()?;
    rest.literal(b'-')?;
    let month = rest.number()?;
    rest.literal(b'-')?;
    let day = rest.number()?;
    let in_range = (1..=12).contains(&month) && day >= 1 && day <= days(year, month);
    rest.clock()?;
    Some(in_range && rest.0.is_empty())
}

struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn year(&mut self) -> Option<u32> {
        let digits = self.0.get(..4).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        let year = digits.iter().fold(0, |year, digit| year * 10 + u32::from(digit - b'0'));
        self.0 = &self.0[4..];
        Some(year)
    }

    /// One digit or two.
    fn number(&mut self) -> Option<u32> {
        let width = self.0.iter().take(2).take_while(|c| c.is_ascii_digit()).count();
        let digits = self.0.get(..width).filter(|digits| !digits.is_empty())?;
        let number = digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
        self.0 = &self.0[width..];
        Some(number)
    }

    fn literal(&mut self, wanted: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[wanted])?;
        Some(())
    }

    /// Nothing, or a time of day with what must follow it.
    fn clock(&mut self) -> Option<()> {
        match self.0.first() {
            None => Some(()),
            Some(b'T' | b't') => {
                self.0 = &self.0[1..];
                self.time()?;
                self.zone()
            }
            Some(b' ') => {
                self.spaces();
                self.time()
            }
            Some(_) => None,
        }
    }

    fn spaces(&mut self) {
        while let [b' ', rest @ ..] = self.0 {
            self.0 = rest;
        }
    }

    fn time(&mut self) -> Option<()> {
        let hour = self.number()?;
        self.literal(b':')?;
        let minute = self.number()?;
        self.literal(b':')?;
        let second = self.number()?;
        if let [b'.' | b',', b'0'..=b'9', ..] = self.0 {
            let digits = self.0[1..].iter().take_while(|c| c.is_ascii_digit()).count();
            self.0 = &self.0[1 + digits..];
        }
        (hour < 24 && minute < 60 && second < 60).then_some(())
    }

    /// `Z`, or an offset of two digits each.
    fn zone(&mut self) -> Option<()> {
        match self.0 {
            [b'Z', rest @ ..] => {
                self.0 = rest;
                Some(())
            }
            [b'+' | b'-', h1, h2, b':', m1, m2, rest @ ..] if [h1, h2, m1, m2].iter().all(|c| c.is_ascii_digit()) => {
                self.0 = rest;
                ((*h1, *h2) <= (b'2', b'4') && *m1 < b'6').then_some(())
            }
            _ => None,
        }
    }
}

fn days(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
