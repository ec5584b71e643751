//! Rust text as tokens with their lines, for rules about code: comments and the contents of literals are no code.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

/// A word or a sign of code; the text of a literal is empty.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
}

/// Returns the tokens of a Rust file; none if it is no Rust, which the compiler reports.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    if let Ok(stream) = text.parse() {
        flatten(stream, &mut tokens);
    }
    tokens
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let token = |text: String, span: Span| Token { text, line: span.start().line };
    for tree in stream {
        match tree {
            TokenTree::Ident(ident) => tokens.push(token(ident.to_string(), ident.span())),
            TokenTree::Punct(sign) => tokens.push(token(sign.as_char().to_string(), sign.span())),
            TokenTree::Literal(literal) => tokens.push(token(String::new(), literal.span())),
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                tokens.push(token(open.to_owned(), group.span_open()));
                flatten(group.stream(), tokens);
                tokens.push(token(close.to_owned(), group.span_close()));
            }
        }
    }
}

/// Returns whether these texts follow each other from this place on.
pub(super) fn is_at(tokens: &[Token], at: usize, texts: &[&str]) -> bool {
    tokens[at..].len() >= texts.len()
        && tokens[at..].iter().zip(texts).all(|(token, text)| token.text == *text)
}

/// Returns the place of the last token of the item that begins here: its closing brace, or its semicolon.
pub(super) fn item_end(tokens: &[Token], start: usize) -> usize {
    let mut depth = 0_i32;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" => depth -= 1,
            "}" if depth <= 1 => return at,
            "}" => depth -= 1,
            ";" if depth == 0 => return at,
            _ => {}
        }
    }
    tokens.len() - 1
}

/// Returns the words of a line: runs of letters, digits and underscores.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(text: &str) -> String {
        tokens(text)
            .iter()
            .map(|token| token.text.as_str())
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        assert_eq!(squeezed("a // b\nc /* d /* e */ f */ g"), "a c g");
        assert_eq!(
            squeezed(r##"a("b \" c", r#"b " \"#, br"\", '{', '\'', '\u{7d}', d)"##),
            "a ( , , , , , , d )"
        );
        assert_eq!(squeezed("fn a<'b>(c: &'b str)"), "fn a < ' b > ( c : & ' b str )");
    }

    #[test]
    fn every_token_has_its_line() {
        let text = "a\n/* b\nc */ d\n\"e\nf\" g\n";
        let lines: Vec<_> = tokens(text).iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 3, 4, 5]);
    }

    #[test]
    fn an_item_ends_with_its_body_or_semicolon() {
        let end = |text: &str| item_end(&tokens(text), 0);
        assert_eq!(end("fn a(b: [u8; 4]) { if c { d } } e"), 17);
        assert_eq!(end("mod a; b"), 2);
    }
}
