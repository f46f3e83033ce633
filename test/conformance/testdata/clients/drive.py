"""Asks as the lines of the standard input say, and prints each answer in a line."""

import dataclasses
import json
import re
import sys

from weir_check import CheckError, Client, Query


def camel(value):
    if isinstance(value, dict):
        return {re.sub("_(.)", lambda m: m[1].upper(), k): camel(v) for k, v in value.items() if v is not None and v is not False or k == "allowed"}
    return [camel(v) for v in value] if isinstance(value, (list, tuple)) else value


client = Client(sys.argv[1])
for line in sys.stdin:
    asked = json.loads(line)
    try:
        answer = getattr(client, asked["call"])(*[Query(**q) for q in asked["queries"]])
        print(json.dumps(camel(dataclasses.asdict(answer))))
    except CheckError as error:
        print(json.dumps({"status": error.status, "detail": error.detail}))
