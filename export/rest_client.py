"""Translates through the REST interface of a model server.

    python export/rest_client.py "A man sleeps."
    python export/rest_client.py --url https://translate.example.org < text

It needs only Python. Certificates are verified, and redirects refused.
"""

from __future__ import annotations

import argparse
import http.client
import json
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from retrying import LARGEST_REPLY, ServingError, TryAgain, WrongReply, batches, one_line, retrying

BUSY = {429, 502, 503}
LONGEST_MESSAGE = 1 << 16  # bytes of the reply with a server's error message


class _RefusesRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect may lead to another server, or from https to http."""

    def redirect_request(
        self,
        request: urllib.request.Request,
        reply: Any,
        code: int,
        reason: str,
        headers: Any,
        place: str,
    ) -> None:
        reply.close()
        raise ServingError(
            f"{request.full_url}: {code}, redirected to {place}: use this address if you trust it"
        )


class RestClient:
    """A connection to one model.

    Args:
        url: The server: scheme, host and port.
        model: The model's name.
        timeout: Seconds to wait for a reply. A request that timed out is not sent again: the server
            may still be computing the answer.
        attempts: How often a request is sent at most, if the server is not reachable or too busy.
        ca_file: A file of certificates to trust instead of the system's.
        batch_size: The largest number of sentences in one request.

    Raises:
        ValueError: `url` does not begin with http:// or https://.
        OSError: `ca_file` cannot be read or has no certificates.
    """

    def __init__(
        self,
        url: str = "http://localhost:8501",
        model: str = "translator",
        timeout: float = 30.0,
        attempts: int = 3,
        ca_file: str | None = None,
        batch_size: int = 32,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"url is {url!r}, wanted http:// or https://")
        self.url = f"{url.rstrip('/')}/v1/models/{model}"
        self.timeout, self.attempts = timeout, attempts
        self.batch_size = batch_size
        context = ssl.create_default_context(cafile=ca_file)
        self.opener = urllib.request.build_opener(
            _RefusesRedirects(), urllib.request.HTTPSHandler(context=context)
        )

    def translate(self, sentences: Sequence[str]) -> list[str]:
        """Translates sentences, in order.

        Raises:
            ServingError: The server did not answer as it should.
        """
        translations: list[str] = []
        for batch in batches(sentences, self.batch_size):
            rows = self.predict(text=batch).get("translation", ())
            if not rows or not all(isinstance(row, str) for row in rows):
                raise WrongReply(self.url, "translation", rows, "a string per sentence")
            translations += rows
        return translations

    def predict(
        self, signature: str = "serving_default", **inputs: Sequence[str]
    ) -> dict[str, Any]:
        """Calls a signature.

        Args:
            signature: Its name.
            **inputs: For each input a list of strings.

        Returns:
            For each output a list with one entry per string.

        Raises:
            ServingError: The server did not answer, refused the request, or answered with something
                else.
        """
        body = {"signature_name": signature, "inputs": inputs}
        request = urllib.request.Request(
            f"{self.url}:predict",
            json.dumps(body, ensure_ascii=False).encode("utf-8"),
            {"Content-Type": "application/json"},
        )
        reply = retrying(lambda: self._send(request), self.attempts)
        try:
            outputs = {**json.loads(reply)["outputs"]}
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ServingError(f"{self.url}: not a model server's reply: {reply[:200]!r}") from None
        count = max(map(len, inputs.values()), default=0)
        for name, rows in outputs.items():
            if not isinstance(rows, list) or len(rows) != count:
                raise WrongReply(self.url, name, rows, f"a list of {count}")
        return outputs

    def _send(self, request: urllib.request.Request) -> bytes:
        place = request.full_url
        try:
            with self.opener.open(request, timeout=self.timeout) as reply:
                data = reply.read(LARGEST_REPLY + 1)
        except urllib.error.HTTPError as error:
            kind = TryAgain if error.code in BUSY else ServingError
            raise kind(f"{place}: {error.code} {_message(error)}") from error
        except (OSError, http.client.HTTPException) as error:
            # urllib wraps errors before the reply in a URLError.
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise ServingError(f"{place}: no answer within {self.timeout:g} s") from error
            again = isinstance(reason, ConnectionError)
            kind = TryAgain if again else ServingError
            raise kind(f"{place}: {reason}") from error
        if len(data) > LARGEST_REPLY:
            raise ServingError(f"{place}: the reply has more than {LARGEST_REPLY} bytes")
        return data


def _message(error: urllib.error.HTTPError) -> str:
    """The server's error message, or else the start of its reply."""
    try:
        body = error.read(LONGEST_MESSAGE)
    except (OSError, http.client.HTTPException):
        return error.reason
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return body[:200].decode("utf-8", "replace") or error.reason


def main() -> int:
    """Translates the arguments, or else the lines of standard input."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sentence", nargs="*")
    parser.add_argument("--url", default="http://localhost:8501")
    parser.add_argument("--model", default="translator")
    parser.add_argument("--timeout", type=float, default=30.0)
    parser.add_argument("--ca_file", help="certificates to trust")
    options = parser.parse_args()
    try:
        lines = options.sentence or [line.rstrip("\n") for line in sys.stdin]
        client = RestClient(options.url, options.model, options.timeout, ca_file=options.ca_file)
        for batch in batches(lines, client.batch_size):
            for translation in client.translate(batch):
                print(one_line(translation))
    except (ServingError, ValueError, OSError) as error:
        print(f"rest_client: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
