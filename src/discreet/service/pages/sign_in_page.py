"""The page for signing in with a token, and the one that a one-time link opens."""

from __future__ import annotations

from discreet.service.messages import ApiResponse
from discreet.service.pages.layout import make_bare_page, make_field
from discreet.service.pages.markup import element
from discreet.service.pages.visits import make_page_response, quote_part


def show_sign_in(*, failed: bool = False, provided: bool = False) -> ApiResponse:
    """The form. An unknown, an ended and a revoked token get the same words."""
    said = element(
        "p", "This does not open anything: it is not known, it has ended, or it was used already.",
        class_="problem", role="alert",
    )  # fmt: skip
    form = element(
        "form",
        make_field(
            "Your token", "token", "It begins with discreet_ and comes from the owner of the data.", type="password",
            autocomplete="current-password", required=True, autofocus=True,
        ),
        element("p", element("button", "Sign in")),
        method="post", action="/sign-in",
    )  # fmt: skip
    other = element("p", "Or ", element("a", "sign in with your organisation", href="/oidc"), ".") if provided else None
    body = element("div", said if failed else None, form, other, class_="card")
    return make_page_response(make_bare_page("Sign in", body, class_="narrow"), 401 if failed else 200)


def show_another(form_key: str, *, failed: bool = False) -> ApiResponse:
    """The form for the token of another dataset; the datasets that are open stay so."""
    said = element(
        "p", "This does not open anything: it is not known, or it has ended.", class_="problem", role="alert"
    )
    form = element(
        "form",
        element("input", type="hidden", name="form_key", value=form_key),
        make_field(
            "The token of the other dataset", "token", "Then you can turn from one to the other without signing in.",
            type="password", autocomplete="off", required=True, autofocus=True,
        ),
        element("p", element("button", "Open it")),
        method="post", action="/another",
    )  # fmt: skip
    back = element("p", element("a", "Back", href="/dataset"))
    body = element("div", said if failed else None, form, back, class_="card")
    return make_page_response(make_bare_page("Another dataset", body, class_="narrow"), 401 if failed else 200)


def show_way_on(cookie: str) -> ApiResponse:
    """A page that goes on to the dataset by itself."""
    body = element(
        "div", element("meta", http_equiv="refresh", content="0; url=/dataset"),
        element("p", "You are signed in. ", element("a", "Go on", href="/dataset")), class_="card",
    )  # fmt: skip
    return make_page_response(make_bare_page("Signed in", body, class_="narrow"), Set_Cookie=cookie)


def show_link(code: str) -> ApiResponse:
    """A button: a program that only looks at the address does not use the link up."""
    form = element(
        "form", element("p", "This link opens the pages of the owner, once."),
        element("p", element("button", "Sign in")),
        method="post", action=f"/once/{quote_part(code)}",
    )  # fmt: skip
    body = element("div", form, class_="card")
    return make_page_response(make_bare_page("Sign in, once", body, class_="narrow"))
