"""Answers the stac_ tools from items.json. The arguments of a call are on standard input, as one JSON object."""

import json
import operator
import pathlib
import statistics
import sys

OPERATORS = {name: getattr(operator, python) for name, python in
             [("eq", "eq"), ("neq", "ne"), ("lt", "lt"), ("lte", "le"), ("gt", "gt"), ("gte", "ge")]}


def fail(what):
    """Tells the model what the arguments should have been."""
    print(what)
    sys.exit(1)


def moment(text, end):
    """Times in UTC compare as texts when all have the same form."""
    if text in ("", ".."):
        return end
    if len(text) == 20 and text[4] == text[7] == "-" and text[10] == "T" and text[13] == text[16] == ":" and text[19] == "Z":
        return text
    return fail(f"`{text}` is not a time such as 2024-05-01T00:00:00Z")


def interval(text):
    start, slash, end = text.partition("/")
    start, end = moment(start, "0"), moment(end if slash else start, "9")
    return (start, end) if start <= end else fail(f"`{text}` ends before it begins")


def checked(arguments):
    """Whatever the catalogue has: a mistake must not look like an empty answer."""
    west, south, east, north = arguments.get("bbox") or (0, 0, 0, 0)
    if west > east or south > north:
        fail("`bbox` is [west, south, east, north], with west <= east and south <= north")
    for conditions in arguments.get("query", {}).values():
        for name in conditions:
            if name not in OPERATORS:
                fail(f"`{name}` is not an operator; use {', '.join(OPERATORS)}")
    return {**arguments, "interval": interval(arguments.get("datetime", ".."))}


def meets(item, arguments):
    box = arguments.get("bbox")
    if box:
        west, south, east, north = item["bbox"]
        if west > box[2] or east < box[0] or south > box[3] or north < box[1]:
            return False
    start, end = arguments["interval"]
    if not start <= item["properties"]["datetime"] <= end:
        return False
    if arguments.get("collections") and item["collection"] not in arguments["collections"]:
        return False
    for name, conditions in arguments.get("query", {}).items():
        for name_of_operator, wanted in conditions.items():
            has = item["properties"].get(name)
            try:
                if has is None or not OPERATORS[name_of_operator](has, wanted):
                    return False
            except TypeError:
                return False
    return True


def search(items, arguments):
    limit, offset, arguments = arguments.get("limit", 10), arguments.get("offset", 0), checked(arguments)
    found = sorted((item for item in items if meets(item, arguments)), key=lambda item: item["id"])
    found.sort(key=lambda item: item["properties"]["datetime"], reverse=True)
    page = [{"id": item["id"], "collection": item["collection"], "bbox": item["bbox"], **item["properties"]}
            for item in found[offset:offset + limit]]
    return {"matched": len(found), "items": page, "next": offset + limit if offset + limit < len(found) else None}


def item(items, arguments):
    found = [item for item in items if item["id"] == arguments["id"]]
    return found[0] if found else fail(f"there is no item `{arguments['id']}`; stac_search lists items")


def cloud_cover(items, arguments):
    covers, arguments = {}, checked(arguments)
    for found in (item for item in items if meets(item, arguments)):
        if "eo:cloud_cover" in found["properties"]:
            covers.setdefault(found["collection"], []).append(found["properties"]["eo:cloud_cover"])
    return {name: {"count": len(all_of), "min": min(all_of), "mean": round(statistics.fmean(all_of), 2),
                   "median": round(statistics.median(all_of), 2), "max": max(all_of)}
            for name, all_of in sorted(covers.items())}


catalogue = json.loads((pathlib.Path(__file__).parent / "items.json").read_text(encoding="utf-8"))
print(json.dumps({"search": search, "item": item, "cloud_cover": cloud_cover}[sys.argv[1]](catalogue["features"], json.load(sys.stdin))))
