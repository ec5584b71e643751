//! The code before the body of a limited function: it asks the limiter, and returns another value if the call is
//! denied.
//!
//! ```text
//! let _passed = {
//!     let asked = ::tidegate::attribute::admit_key(&LIMITER, &key, cost);
//!     match asked {
//!         Ok(passed) => passed,
//!         Err(refusal) => return FromDenied::from_denied(refusal),
//!     }
//! };
//! ```
//!
//! The generated names cannot collide with names of the user. Variables have another syntax context, the only item has
//! a reserved name, and everything else is a path from the root. The key and the limiter are borrowed in a statement of
//! their own, so nothing is borrowed while the function waits.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Error, Expr, ExprClosure, ExprReference, Result, ReturnType, Token};

use crate::arguments::{Arguments, Otherwise, Promise, Wait};
use crate::function::Function;

/// Returns the function with its limit, or the unchanged function with a compile error.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    held(arguments, item.clone()).unwrap_or_else(|error| {
        let mut whole = error.into_compile_error();
        whole.extend(item);
        whole
    })
}

fn held(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let function: Function = syn::parse2(item)?;
    let arguments: Arguments = syn::parse2(arguments)?;
    let ask = ask(&arguments, &function);
    let refused = match &arguments.otherwise {
        None => refused_by_type(&function),
        Some(Otherwise::Call(path)) => {
            let arguments = function.arguments()?;
            let awaited = function.is_async().then(|| quote_spanned!(at(path.span())=> .await));
            quote_spanned!(at(path.span())=> _ => return #path(#(#arguments),*) #awaited)
        }
        Some(Otherwise::Closure(closure)) => refused_by_closure(closure, &function)?,
    };
    // A closure may diverge or return unit, which would cause warnings in the generated code.
    let lints = matches!(arguments.otherwise, Some(Otherwise::Closure(_))).then(|| {
        quote_spanned! {Span::mixed_site()=>
            #[allow(unreachable_code, clippy::diverging_sub_expression, clippy::unused_unit)]
        }
    });
    Ok(function.beginning_with(&quote_spanned! {Span::mixed_site()=>
        #lints
        let _passed = {
            #ask
            match asked {
                ::core::result::Result::Ok(passed) => passed,
                #refused
            }
        };
    }))
}

/// Returns a span with the hygiene of the macro, at a place in the user's code.
fn at(place: Span) -> Span {
    Span::mixed_site().located_at(place)
}

/// Returns the statement that asks the limiter and stores the result in `asked`.
fn ask(arguments: &Arguments, function: &Function) -> TokenStream {
    let (limiter, cost) = (limiter(arguments), cost(arguments));
    let key = arguments.key.as_ref().map(|key| {
        let key = borrowed_parts(key);
        quote_spanned!(Span::mixed_site()=> #key,)
    });
    let suffix = if key.is_some() { "_key" } else { "" };
    let Some(wait) = &arguments.wait else {
        let admit = format_ident!("admit{suffix}", span = Span::mixed_site());
        return quote_spanned!(Span::mixed_site()=>
            let asked = ::tidegate::attribute::#admit(#limiter, #key #cost);
        );
    };
    let longest = match wait {
        Wait::Micros(micros) => {
            quote_spanned!(Span::mixed_site()=> ::tidegate::attribute::Span::from_micros(#micros))
        }
        Wait::Given(longest) => quote_spanned!(Span::mixed_site()=> {
            let longest: ::tidegate::attribute::Span = #longest;
            longest
        }),
    };
    let acquire = format_ident!("acquire{suffix}", span = Span::mixed_site());
    let waited = if function.is_async() {
        quote_spanned!(Span::mixed_site()=> turn.await)
    } else {
        quote_spanned!(Span::mixed_site()=> turn.blocking())
    };
    quote_spanned!(Span::mixed_site()=>
        let turn = ::tidegate::attribute::#acquire(#limiter, #key #cost, #longest);
        let asked = #waited;
    )
}

/// Returns the limiter, borrowed: the user's, or one that belongs to the function.
fn limiter(arguments: &Arguments) -> TokenStream {
    let (constant, limit) = match &arguments.promise {
        Promise::Limiter(limiter) => return borrowed(limiter),
        Promise::Text(text) => {
            (None, quote_spanned!(Span::mixed_site()=> ::tidegate::attribute::limit(#text)))
        }
        // A constant, because an invalid one does not compile.
        Promise::Constant(limit) => {
            let name = quote_spanned!(Span::mixed_site()=> __TIDEGATE_LIMIT);
            (Some(quote_spanned!(Span::mixed_site()=> const #name: ::tidegate::Limit = #limit;)), name)
        }
    };
    let holder = match &arguments.key {
        Some(_) => quote_spanned!(Span::mixed_site()=> ::tidegate::Limiter),
        None => quote_spanned!(Span::mixed_site()=> ::tidegate::attribute::One),
    };
    quote_spanned! {Span::mixed_site()=> {
        #constant
        static __TIDEGATE_LIMITER: ::tidegate::attribute::LazyLock<#holder> =
            ::tidegate::attribute::LazyLock::new(|| #holder::new(#limit));
        &__TIDEGATE_LIMITER
    }}
}

fn cost(arguments: &Arguments) -> TokenStream {
    match &arguments.cost {
        Some(cost) => quote_spanned!(Span::mixed_site()=> {
            let units: u64 = #cost;
            units
        }),
        None => quote_spanned!(Span::mixed_site()=> 1),
    }
}

/// Returns a key from which nothing is moved: a tuple is built from its borrowed parts.
fn borrowed_parts(key: &Expr) -> TokenStream {
    match key {
        Expr::Tuple(tuple) => {
            let parts = tuple.elems.iter().map(|part| {
                let part = borrowed(part);
                quote_spanned!(Span::mixed_site()=> ::tidegate::attribute::part(#part))
            });
            quote_spanned!(at(key.span())=> &(#(#parts,)*))
        }
        key => borrowed(key),
    }
}

fn borrowed(value: &Expr) -> TokenStream {
    let and_token = Token![&](at(value.span()));
    let expr = Box::new(value.clone());
    let reference = ExprReference { attrs: Vec::new(), and_token, mutability: None, expr };
    quote_spanned!(Span::mixed_site()=> #reference)
}

/// Returns the match arm of a denial that is converted into the return type of the function.
fn refused_by_type(function: &Function) -> TokenStream {
    let (first, last) = function.place_of_output();
    let path = quote_spanned!(at(first)=> ::tidegate::FromDenied::from_denied);
    let call = quote_spanned!(at(last)=> (refusal));
    quote_spanned!(Span::mixed_site()=> ::core::result::Result::Err(refusal) => return #path #call)
}

/// Returns the match arm of a denial that is handled by a closure. The body of the closure is inlined, so it may move
/// arguments, use `?` and, if async, `.await`.
fn refused_by_closure(closure: &ExprClosure, function: &Function) -> Result<TokenStream> {
    if let (Some(asyncness), false) = (&closure.asyncness, function.is_async()) {
        let what = "this function is not async, so it cannot await what `otherwise` does; leave `async` out";
        return Err(Error::new(asyncness.span(), what));
    }
    let (pattern, body) = (&closure.inputs, &closure.body);
    let value = match &closure.output {
        ReturnType::Default => quote_spanned!(at(body.span())=> return #body;),
        ReturnType::Type(_, output) => {
            quote_spanned!(at(body.span())=> let value: #output = #body; return value;)
        }
    };
    Ok(quote_spanned! {Span::mixed_site()=>
        ::core::result::Result::Err(refusal) => {
            let #pattern = refusal;
            #value
        }
    })
}
