//! The arguments of the attribute.

use proc_macro2::Span;
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned as _;
use syn::{Error, Expr, ExprClosure, ExprLit, ExprPath, Ident, Lit, LitStr, Pat, Result, Token};
use tidegate_core::{Limit, LimitError, attribute};

/// The names of the arguments, each with an example of a value.
const NAMES: [(&str, &str); 6] = [
    ("limit", "LIMIT"),
    ("limiter", "LIMITER"),
    ("key", "user"),
    ("cost", "items.len() as u64"),
    ("wait", "\"1s\""),
    ("otherwise", "|denied| …"),
];

/// The arguments. During parsing `P` is an `Option`, because the limit may not have been read yet.
#[derive(Default)]
pub(crate) struct Arguments<P = Promise> {
    pub(crate) promise: P,
    pub(crate) key: Option<Expr>,
    pub(crate) cost: Option<Expr>,
    pub(crate) wait: Option<Wait>,
    pub(crate) otherwise: Option<Otherwise>,
}

/// The source of the limit.
pub(crate) enum Promise {
    Text(LitStr),
    Constant(Expr),
    Limiter(Expr),
}

pub(crate) enum Wait {
    /// A parsed text, in microseconds.
    Micros(u64),
    /// An expression that is a duration when the function is called.
    Given(Expr),
}

pub(crate) enum Otherwise {
    /// A function with the same arguments.
    Call(ExprPath),
    /// A closure that receives the denial.
    Closure(Box<ExprClosure>),
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Arguments> {
        let mut written = Arguments::<Option<Promise>>::default();
        let mut errors = None;
        while !input.is_empty() {
            let argument = Argument::parse(input)?;
            note(&mut errors, written.take(argument));
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        match (errors, written.promise) {
            (Some(error), _) => Err(error),
            (None, Some(promise)) => Ok(Arguments {
                promise,
                key: written.key,
                cost: written.cost,
                wait: written.wait,
                otherwise: written.otherwise,
            }),
            (None, None) => Err(Error::new(
                Span::call_site(),
                "#[rate_limit] needs a limit; write #[rate_limit(\"10/s burst 20\")], \
                 or `limiter = NAME` for a limiter that several functions share",
            )),
        }
    }
}

fn note(errors: &mut Option<Error>, result: Result<()>) {
    match (errors, result) {
        (_, Ok(())) => {}
        (Some(errors), Err(error)) => errors.combine(error),
        (none, Err(error)) => *none = Some(error),
    }
}

/// One argument: its name and its value, or a text alone.
struct Argument {
    name: Option<Ident>,
    value: Expr,
}

impl Argument {
    fn parse(input: ParseStream<'_>) -> Result<Argument> {
        if input.peek(Ident::peek_any) && !input.peek2(Token![::]) {
            let name = input.call(Ident::parse_any)?;
            if input.peek(Token![=]) && !input.peek(Token![==]) {
                input.parse::<Token![=]>()?;
                if input.is_empty() || input.peek(Token![,]) {
                    return Err(Error::new(name.span(), nothing_after(&name)));
                }
                return Ok(Argument { value: input.parse()?, name: Some(name) });
            }
            return Err(Error::new(name.span(), nothing_after(&name)));
        }
        if input.peek(LitStr) {
            return Ok(Argument { name: None, value: Expr::Lit(input.parse()?) });
        }
        Err(input.error(
            "an argument is a limit in quotes, as in \"10/s burst 20\", or a name with a value, as in `key = user`",
        ))
    }
}

fn nothing_after(name: &Ident) -> String {
    let text = name.to_string();
    if let Some((_, example)) = NAMES.into_iter().find(|(known, _)| *known == text) {
        return format!("`{text}` needs a value; write `{text} = {example}`");
    }
    match meant(&text) {
        Some(name) => unknown(&text, name),
        None => format!(
            "`{text}` alone says nothing; write `limiter = {text}` for a limiter, or `limit = {text}` for a constant"
        ),
    }
}

/// Returns the known argument that is most like this name, if one is near enough.
fn meant(name: &str) -> Option<&'static str> {
    let nearest = NAMES.into_iter().map(|(known, _)| (attribute::distance(name, known), known)).min();
    nearest.filter(|(distance, _)| *distance <= 2).map(|(_, known)| known)
}

fn unknown(name: &str, meant: &str) -> String {
    format!("unknown argument `{name}`; did you mean `{meant}`?")
}

impl Arguments<Option<Promise>> {
    fn take(&mut self, Argument { name, value }: Argument) -> Result<()> {
        let Some(name) = name else {
            return self.promise(value.span(), Promise::of_text_or_constant(value)?);
        };
        let text = name.to_string();
        match text.as_str() {
            "limit" => self.promise(name.span(), Promise::of_text_or_constant(value)?),
            "limiter" => self.promise(name.span(), Promise::Limiter(value)),
            "key" => once(&mut self.key, &name, value),
            "cost" => once(&mut self.cost, &name, cost(value)?),
            "wait" => once(&mut self.wait, &name, wait(value)?),
            "otherwise" => once(&mut self.otherwise, &name, otherwise(value)?),
            _ => Err(Error::new(
                name.span(),
                match meant(&text) {
                    Some(name) => unknown(&text, name),
                    None => format!(
                        "unknown argument `{text}`; known are {}",
                        NAMES.map(|(known, _)| known).join(", ")
                    ),
                },
            )),
        }
    }

    fn promise(&mut self, place: Span, promise: Promise) -> Result<()> {
        match self.promise.replace(promise) {
            None => Ok(()),
            Some(before) => {
                let now = self.promise.as_ref().map_or("", Promise::name);
                let before = before.name();
                Err(Error::new(
                    place,
                    if before == now {
                        format!("{now} is given twice; leave one of them out")
                    } else {
                        format!(
                            "{now} is given beside {before}; a function has one limit, so leave one of them out"
                        )
                    },
                ))
            }
        }
    }
}

fn once<T>(place: &mut Option<T>, name: &Ident, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new(name.span(), format!("`{name}` is said twice; leave one of them out"))),
    }
}

impl Promise {
    fn of_text_or_constant(value: Expr) -> Result<Promise> {
        match value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => match text.value().parse::<Limit>() {
                Ok(_) => Ok(Promise::Text(text)),
                Err(error) => Err(Error::new(text.span(), format_args!("{error:#}"))),
            },
            Expr::Lit(other) => Err(Error::new_spanned(
                &other,
                "a limit is a text in quotes, as in \"10/s burst 20\", or a constant of type `tidegate::Limit`",
            )),
            Expr::Path(path) if path.path.segments.first().is_some_and(|first| first.ident == "Self") => {
                Err(Error::new_spanned(
                    &path,
                    "all types share the one limiter of this function, so its limit cannot come from `Self`; \
                     name the type, or use a constant outside of it",
                ))
            }
            other => Ok(Promise::Constant(other)),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Promise::Text(_) => "a limit in quotes",
            Promise::Constant(_) => "`limit`",
            Promise::Limiter(_) => "`limiter`",
        }
    }
}

fn cost(value: Expr) -> Result<Expr> {
    match &value {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.base10_digits() == "0" => {
            Err(Error::new(number.span(), "cost 0: a cost is at least 1; leave it out for 1"))
        }
        _ => Ok(value),
    }
}

fn wait(value: Expr) -> Result<Wait> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => match attribute::span(&text.value()) {
            Ok(span) if span.is_zero() => Err(Error::new(
                text.span(),
                format!("wait \"{}\": no time at all; leave `wait` out to be denied at once", text.value()),
            )),
            Ok(span) => match u64::try_from(span.as_micros()) {
                Ok(micros) => Ok(Wait::Micros(micros)),
                Err(_) => Err(Error::new(text.span(), "wait: longer than can be counted; use a shorter one")),
            },
            Err(error) => Err(Error::new(text.span(), about_wait(&error))),
        },
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => Err(Error::new(
            number.span(),
            format!("wait {number}: a time has a unit; write \"{number}s\" if seconds are meant"),
        )),
        Expr::Lit(other) => {
            Err(Error::new_spanned(&other, "a wait is a time in quotes, as in \"1s\" or \"1m30s\""))
        }
        other => Ok(Wait::Given(other)),
    }
}

/// Returns the library's own message about a time, which it parses as part of a limit.
fn about_wait(error: &LimitError) -> String {
    let shown = format!("{error:#}");
    format!("wait{}", shown.strip_prefix("limit").unwrap_or(&shown))
}

fn otherwise(value: Expr) -> Result<Otherwise> {
    match value {
        Expr::Path(path) => Ok(Otherwise::Call(path)),
        Expr::Closure(closure) => match (closure.inputs.len(), closure.inputs.first()) {
            (1, Some(Pat::Rest(_))) | (0 | 2.., _) => Err(Error::new_spanned(
                &closure,
                "this closure is called with the denial and nothing else; write `|denied| …`, or `|_| …`",
            )),
            _ => Ok(Otherwise::Closure(Box::new(closure))),
        },
        other => Err(Error::new_spanned(
            &other,
            "`otherwise` is the name of a function with the same arguments, or a closure that gets the refusal; \
             for a value write `|_| …`",
        )),
    }
}
