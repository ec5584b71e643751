//! The function as it was written.
//!
//! Its body stays a list of tokens: nothing here depends on its content, and the compiler reports errors in it at their
//! original place.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt as _};
use syn::parse::{Parse, ParseStream, Parser as _};
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, FnArg, Pat, Result, ReturnType, Signature, Token, Type, Visibility};

pub(crate) struct Function {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    pub(crate) signature: Signature,
    body: Group,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Function> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        let signature = parse_signature(input)?;
        if input.peek(Token![;]) {
            return Err(Error::new(
                signature.ident.span(),
                format!(
                    "`{}` has no body to hold to a limit; put #[rate_limit] on the functions that implement it",
                    signature.ident
                ),
            ));
        }
        let body = parse_body(input)?;
        let function = Function { attributes, visibility, signature, body };
        function.reject_what_cannot_be_held()?;
        Ok(function)
    }
}

/// Parses the body. A macro that has it as `$body:block` wraps it into an invisible group.
fn parse_body(input: ParseStream<'_>) -> Result<Group> {
    let tree: TokenTree = input.parse()?;
    match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => parse_body.parse2(group.stream()),
        TokenTree::Group(group) => Ok(group),
        other => {
            Err(Error::new(other.span(), "here is the body of the function expected; write it in braces"))
        }
    }
}

/// Parses the signature. Fails with an explanation if this is not a function.
fn parse_signature(input: ParseStream<'_>) -> Result<Signature> {
    if is_function(input) {
        return input.parse();
    }
    let remedy = match input.cursor().token_tree() {
        Some((TokenTree::Ident(word), _)) if word == "impl" || word == "trait" || word == "mod" => {
            "; put it on each function inside"
        }
        _ => "; put it on a function that does what is to be limited",
    };
    Err(input
        .error(format_args!("#[rate_limit] holds functions to a limit, and this is not a function{remedy}")))
}

/// Returns true if `fn` follows, after the qualifiers that may precede it.
fn is_function(input: ParseStream<'_>) -> bool {
    let mut cursor = input.cursor();
    while let Some((token, rest)) = cursor.token_tree() {
        match token {
            TokenTree::Ident(word) if word == "fn" => return true,
            TokenTree::Ident(word)
                if ["const", "async", "unsafe", "extern"].iter().any(|before| word == before) => {}
            TokenTree::Literal(_) => {} // the name after `extern`
            _ => return false,
        }
        cursor = rest;
    }
    false
}

impl Function {
    pub(crate) fn is_async(&self) -> bool {
        self.signature.asyncness.is_some()
    }

    /// Returns the place of the return type for error messages: its first and its last token.
    pub(crate) fn place_of_output(&self) -> (Span, Span) {
        let tokens = match &self.signature.output {
            ReturnType::Default => self.signature.ident.to_token_stream(),
            ReturnType::Type(_, output) => output.to_token_stream(),
        };
        let name = self.signature.ident.span();
        let mut places = tokens.into_iter().map(|token| token.span());
        let first = places.next().unwrap_or(name);
        (first, places.last().unwrap_or(first))
    }

    /// Returns the arguments, to call another function with them.
    pub(crate) fn arguments(&self) -> Result<Vec<TokenStream>> {
        let mut arguments = Vec::new();
        for input in &self.signature.inputs {
            match input {
                FnArg::Receiver(receiver) => arguments.push(receiver.self_token.to_token_stream()),
                FnArg::Typed(typed) => match &*typed.pat {
                    Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => {
                        arguments.push(name.ident.to_token_stream());
                    }
                    pattern => {
                        return Err(Error::new_spanned(
                            pattern,
                            "`otherwise` is called with the same arguments, and this one has no name; \
                             give it one and take it apart in the body, or write `otherwise = |refusal| …`",
                        ));
                    }
                },
            }
        }
        Ok(arguments)
    }

    fn reject_what_cannot_be_held(&self) -> Result<()> {
        if let Some(second) = self.attributes.iter().find(|attribute| is_ours(attribute)) {
            return Err(Error::new_spanned(
                second,
                "a function has one #[rate_limit]: of two, one would be spent although the other denies; \
                 leave one out, and ask for both or neither in the body with `tidegate::admit_all`",
            ));
        }
        if let Some(constness) = &self.signature.constness {
            return Err(Error::new(
                constness.span(),
                "a `const fn` can run while the program is compiled, where nothing can be counted; \
                 leave `const` out",
            ));
        }
        match &self.signature.output {
            ReturnType::Type(_, output) if !self.is_async() && is_future(output) => Err(Error::new_spanned(
                output,
                "this function returns a future, so the limit would be asked when it is called and not when it \
                 is awaited; write `async fn`. Under #[async_trait], put #[rate_limit] on an `async fn` that \
                 the method calls",
            )),
            _ => Ok(()),
        }
    }

    /// Returns the same function with these statements before its own.
    pub(crate) fn beginning_with(&self, statements: &TokenStream) -> TokenStream {
        let split = |input: ParseStream<'_>| {
            let inner = input.call(Attribute::parse_inner)?;
            Ok((inner, input.parse::<TokenStream>()?))
        };
        // A body that cannot be split is left to the compiler, which reports the error.
        let (inner, rest) = split.parse2(self.body.stream()).unwrap_or((Vec::new(), self.body.stream()));
        let mut stream = TokenStream::new();
        stream.append_all(&inner);
        statements.to_tokens(&mut stream);
        rest.to_tokens(&mut stream);
        let mut body = Group::new(Delimiter::Brace, stream);
        body.set_span(self.body.span());

        let mut whole = TokenStream::new();
        whole.append_all(&self.attributes);
        self.visibility.to_tokens(&mut whole);
        self.signature.to_tokens(&mut whole);
        body.to_tokens(&mut whole);
        whole
    }
}

fn is_ours(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|last| last.ident == "rate_limit")
}

/// Returns true if a type is written as a future: `impl Future<…>` or `Pin<Box<dyn Future<…>>>`.
fn is_future(output: &Type) -> bool {
    let is_boxed = matches!(output, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Pin"));
    let is_opaque = matches!(output, Type::ImplTrait(_));
    (is_boxed || is_opaque) && names_future(output.to_token_stream())
}

fn names_future(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(word) => word == "Future",
        TokenTree::Group(group) => names_future(group.stream()),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tokens without any whitespace.
    fn text(tokens: &TokenStream) -> String {
        tokens.to_string().split_whitespace().collect()
    }

    #[test]
    fn everything_around_the_body_is_kept_as_it_was() {
        let written = r#"
            #[doc = "A function."]
            #[inline]
            pub(crate) async unsafe extern "C" fn held<'a, T: Copy, const N: usize>(
                self: &'a Self,
                mut items: [T; N],
                (left, right): (u8, impl Fn(&'a T) -> bool),
            ) -> Result<&'a T, Refusal>
            where
                T: 'a,
            {
                #![allow(unused)]
                let answer = 42;
                Err(self.refuse(answer))
            }
        "#;
        let tokens: TokenStream = written.parse().unwrap();
        let function: Function = syn::parse2(tokens.clone()).unwrap();
        assert_eq!(text(&function.beginning_with(&TokenStream::new())), text(&tokens));

        let first: TokenStream = "first ( ) ;".parse().unwrap();
        let expected = written.replace("let answer", "first(); let answer").parse::<TokenStream>().unwrap();
        assert_eq!(text(&function.beginning_with(&first)), text(&expected));
    }

    #[test]
    fn a_body_that_is_not_finished_is_still_a_body() {
        let tokens: TokenStream = "fn held() { let answer = ; answer. }".parse().unwrap();
        let function: Function = syn::parse2(tokens.clone()).unwrap();
        assert_eq!(text(&function.beginning_with(&TokenStream::new())), text(&tokens));
    }
}
