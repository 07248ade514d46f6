# Terminal output with SGR colours to an SVG of at most 80 columns. Run it in the C locale: it counts UTF-8 characters
# itself, so that every awk gives the same picture. Knows SGR 0 (reset), 1 (bold), 2 (dim) and 31 to 36 (colours); other
# escape sequences are dropped. A character is taken to be one column wide.

BEGIN {
    COLUMNS = 80
    WIDTH = 8.4   # of a column, in pixels, at the font size below
    HEIGHT = 20   # of a line
    PAD = 20
    row = 0
    style = ""
}

{
    n = 0
    rest = $0
    while (rest != "") {
        if (match(rest, /^\033\[[0-9;]*[A-Za-z]/)) {
            if (substr(rest, RLENGTH, 1) == "m") change(substr(rest, 3, RLENGTH - 3))
            rest = substr(rest, RLENGTH + 1)
            continue
        }
        size = bytes(rest)
        chars[++n] = substr(rest, 1, size)
        styles[n] = style
        rest = substr(rest, size + 1)
    }
    from = 1
    while (n - from >= COLUMNS) {
        to = from + COLUMNS - 1
        for (i = to + 1; i > from + COLUMNS / 2; i--)
            if (chars[i] == " ") { to = i; break }
        draw(from, to)
        from = to + 1
    }
    draw(from, n)
}

END {
    wide = COLUMNS * WIDTH + 2 * PAD
    high = row * HEIGHT + 2 * PAD
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n", wide, high, wide, high
    print "<title>A session of yoi in a terminal</title>"
    print "<style>"
    print "text { font: 14px 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace; fill: #d7dae0; white-space: pre }"
    print ".dim { fill: #8b93a1 } .bold { font-weight: bold; fill: #ffffff }"
    print ".c1 { fill: #f2777a } .c2 { fill: #8fce7f } .c3 { fill: #f0c674 } .c4 { fill: #81a2e0 } .c5 { fill: #c397d8 } .c6 { fill: #70c0ba }"
    print "</style>"
    printf "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#1b1e24\"/>\n", wide, high
    printf "%s", lines
    print "</svg>"
}

# One row: a piece for each run of the same style. The length of a piece is fixed, so that any font keeps the columns.
function draw(from, to,    i, began, text) {
    began = from
    text = ""
    for (i = from; i <= to; i++) {
        text = text escaped(chars[i])
        if (i < to && styles[i + 1] == styles[i]) continue
        if (text ~ /[^ ]/)
            lines = lines sprintf("<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\"%s>%s</text>\n", PAD + (began - from) * WIDTH, PAD + row * HEIGHT + 14, (i - began + 1) * WIDTH, styles[i] == "" ? "" : " class=\"" styles[i] "\"", text)
        text = ""
        began = i + 1
    }
    row++
}

function change(code,    parts, n, i) {
    n = split(code == "" ? "0" : code, parts, ";")
    for (i = 1; i <= n; i++) {
        if (parts[i] == 0) style = ""
        else if (parts[i] == 1) style = (style == "" ? "" : style " ") "bold"
        else if (parts[i] == 2) style = (style == "" ? "" : style " ") "dim"
        else if (parts[i] >= 31 && parts[i] <= 36) style = (style == "" ? "" : style " ") "c" (parts[i] - 30)
    }
}

# Length of the UTF-8 character at the start.
function bytes(text,    first) {
    first = substr(text, 1, 1)
    if (first < "\200") return 1
    if (first < "\340") return 2
    if (first < "\360") return 3
    return 4
}

function escaped(char) {
    if (char == "&") return "&amp;"
    if (char == "<") return "&lt;"
    if (char == ">") return "&gt;"
    return char
}
