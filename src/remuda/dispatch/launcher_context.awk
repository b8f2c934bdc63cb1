# Reads the bytes of a launcher context file as decimal numbers (od -t u1) and prints the launcher it
# names, or fails and prints the reason. A strict JSON parser: the same documents pass as in
# launcher_context.py.
#
# Bytes that are not printable ASCII, and %, are kept and printed as %XX, so that any string is one safe
# line. b[1..n] are the bytes, i is the place in them, now is the current time. No apostrophes:
# shell_twin.py puts this program between single quotes.

function fail(reason) { print reason; exit 1 }

function check_utf8(    k, c, more, low, high) {
    for (k = 1; k <= n; k++) {
        c = b[k]
        if (more) {
            if (c < low || c > high) fail("not_utf8")
            low = 128; high = 191; more--
        } else if (c >= 128) {
            # Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte.
            low = (c == 224) ? 160 : (c == 240) ? 144 : 128
            high = (c == 237) ? 159 : (c == 244) ? 143 : 191
            more = (c < 194 || c > 244) ? 0 : (c < 224) ? 1 : (c < 240) ? 2 : 3
            if (!more) fail("not_utf8")
        }
    }
    if (more) fail("not_utf8")
}

function space() { while (b[i] == 32 || b[i] == 10 || b[i] == 13 || b[i] == 9) i++ }

function expect(c) { if (b[i++] != c) fail("bad_json") }

function digits(    first) {
    for (first = i; b[i] >= 48 && b[i] <= 57; i++) {}
    if (i == first) fail("bad_json")
}

function number() {
    if (b[i] == 45) i++
    if (b[i] == 48) i++; else digits()
    if (b[i] == 46) { i++; digits() }
    if (b[i] == 69 || b[i] == 101) {
        i++
        if (b[i] == 43 || b[i] == 45) i++
        digits()
    }
}

function literal(    word) {
    while (b[i] >= 97 && b[i] <= 122 && length(word) < 6) word = word shown[b[i++]]
    if (word != "true" && word != "false" && word != "null") fail("bad_json")
}

function hex4(    k, c, code) {
    for (k = 0; k < 4; k++) {
        c = b[i++]
        if (c >= 48 && c <= 57) c -= 48
        else if (c >= 65 && c <= 70) c -= 55
        else if (c >= 97 && c <= 102) c -= 87
        else fail("bad_json")
        code = code * 16 + c
    }
    return code
}

function utf8(code) {
    if (code < 128) return shown[code]
    if (code < 2048) return shown[192 + int(code / 64)] shown[128 + code % 64]
    if (code < 65536)
        return shown[224 + int(code / 4096)] shown[128 + int(code / 64) % 64] shown[128 + code % 64]
    return shown[240 + int(code / 262144)] shown[128 + int(code / 4096) % 64] \
        shown[128 + int(code / 64) % 64] shown[128 + code % 64]
}

function escape(    c, code, low, back) {
    c = b[i++]
    if (c in escaped) return shown[escaped[c]]
    if (c != 117) fail("bad_json")
    code = hex4()
    if (code >= 55296 && code <= 56319 && b[i] == 92 && b[i + 1] == 117) {
        back = i
        i += 2
        low = hex4()
        if (low >= 56320 && low <= 57343) code = 65536 + (code - 55296) * 1024 + low - 56320
        else i = back
    }
    return utf8(code)
}

# Long strings are gathered in parts: appending byte by byte would copy the whole each time.
function string(    c, piece, part, whole) {
    expect(34)
    while ((c = b[i++]) != 34) {
        if (c < 32) fail("bad_json")
        piece = (c == 92) ? escape() : shown[c]
        part = part piece
        if (length(part) > 250) { whole = whole part; part = "" }
    }
    return whole part
}

# Reads one value; sets kind, and text if it is a string.
function value(depth,    c) {
    space()
    c = b[i]
    kind = "other"
    if (c == 123 || c == 91) {
        if (depth == 64) fail("nested_too_deeply")
        members(depth + 1, c)
        kind = (c == 123) ? "object" : "other"
    }
    else if (c == 34) { text = string(); kind = "string" }
    else if (c == 45 || c >= 48 && c <= 57) number()
    else literal()
}

function members(depth, open,    key) {
    i++
    space()
    if (b[i] == open + 2) { i++; return }
    while (1) {
        if (open == 123) {
            space()
            key = string()
            space()
            expect(58)
        }
        value(depth)
        if (depth == 1 && open == 123) keep(key)
        space()
        if (b[i] == open + 2) { i++; return }
        expect(44)
    }
}

function keep(key) {
    if (key in kinds) twice = 1
    kinds[key] = kind
    texts[key] = text
}

function month_days(year, month) {
    if (month == 2) return (year % 4 == 0 && year % 100 != 0 || year % 400 == 0) ? 29 : 28
    return (month == 4 || month == 6 || month == 9 || month == 11) ? 30 : 31
}

function in_range(x, low, high) { return x >= low && x <= high }

# Seconds since 1970 of an RFC 3339 timestamp; empty if it is none.
function epoch(stamp,    date, clock, year, month, day, hour, minute, second, zone, shift) {
    date = "^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
    clock = "[Tt][0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
    if (stamp !~ (date clock "([.][0-9]+)?([Zz]|[-+][0-9][0-9]:[0-9][0-9])$")) return ""
    year = substr(stamp, 1, 4) + 0; month = substr(stamp, 6, 2) + 0; day = substr(stamp, 9, 2) + 0
    hour = substr(stamp, 12, 2) + 0; minute = substr(stamp, 15, 2) + 0; second = substr(stamp, 18, 2) + 0
    if (stamp !~ /[Zz]$/) {
        zone = substr(stamp, length(stamp) - 5)
        if (substr(zone, 2, 2) + 0 > 23 || substr(zone, 5, 2) + 0 > 59) return ""
        shift = (substr(zone, 2, 2) * 60 + substr(zone, 5, 2)) * 60
        if (zone ~ /^-/) shift = -shift
    }
    if (year < 1 || !in_range(month, 1, 12) || !in_range(day, 1, month_days(year, month))) return ""
    if (hour > 23 || minute > 59 || second > 59) return ""
    # Years begin in March here, so that the leap day is the last of its year.
    if (month < 3) { year--; month += 12 }
    day += 365 * year + int(year / 4) - int(year / 100) + int(year / 400) + int((153 * month - 457) / 5)
    return ((day - 719469) * 24 + hour) * 3600 + minute * 60 + second - shift
}

function check_age(    started) {
    if (!("started_at" in kinds)) return
    started = (kinds["started_at"] == "string") ? epoch(texts["started_at"]) : ""
    if (started == "") fail("unknown_age")
    if (epoch(now) - started >= 86400) fail("stale")
}

BEGIN {
    for (k = 0; k < 256; k++)
        shown[k] = (k < 32 || k > 126 || k == 37) ? sprintf("%%%02X", k) : sprintf("%c", k)
    split("34 34 92 92 47 47 98 8 102 12 110 10 114 13 116 9", pairs, " ")
    for (k = 1; k < 16; k += 2) escaped[pairs[k] + 0] = pairs[k + 1] + 0
}

{ for (k = 1; k <= NF; k++) b[++n] = $k + 0 }

END {
    b[n + 1] = -1
    if (b[1] == 239 && b[2] == 187 && b[3] == 191) fail("byte_order_mark")
    check_utf8()
    i = 1
    value(0)
    space()
    if (i != n + 1) fail("bad_json")
    if (kind != "object") fail("not_an_object")
    if (twice) fail("duplicate_key")
    if (kinds["launcher"] != "string") fail("no_launcher")
    check_age()
    print texts["launcher"]
}
