# Terminal output with SGR colours to an SVG of at most 80 columns, dark, or light with `-v light=1`. Run it in the C locale:
# it counts UTF-8 characters itself, so that every awk gives the same picture. Knows SGR 0 (reset), 1 (bold), 2 (dim), 31 to
# 36 (colours) and 39 (no colour); other escape sequences are dropped. A character is taken to be one column wide.

BEGIN {
    COLUMNS = 80
    WIDTH = 8.4   # of a column, in pixels, at the font size below
    HEIGHT = 20   # of a line
    PAD = 20
    row = 0
    style = ""
    if (light) split("#fbfbfc #2a2e36 #69717d #000000 #b3261e #2d7d32 #8a6100 #2757a8 #8338a8 #137a75", colour, " ")
    else split("#1b1e24 #d7dae0 #8b93a1 #ffffff #f2777a #8fce7f #f0c674 #81a2e0 #c397d8 #70c0ba", colour, " ")
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
    high = last * HEIGHT + 2 * PAD
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" xml:space=\"preserve\">\n", wide, high, wide, high
    printf "<title>%s</title>\n", title
    print "<style>"
    print "text { font: 14px 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace; fill: " colour[2] "; white-space: pre }"
    print ".dim { fill: " colour[3] " } .bold { font-weight: bold; fill: " colour[4] " }"
    for (i = 1; i <= 6; i++) printf ".c%d { fill: %s }%s", i, colour[4 + i], i == 6 ? "\n" : " "
    print "</style>"
    printf "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"%s\"/>\n", wide, high, colour[1]
    printf "%s", lines
    print "</svg>"
}

# One row: a piece for each run of the same style, without the spaces around it. The length of a piece is fixed, so that any
# font keeps the columns.
function draw(from, to,    i, began) {
    began = from
    for (i = from; i <= to; i++) {
        if (i < to && styles[i + 1] == styles[i]) continue
        piece(began, i, from)
        began = i + 1
    }
    row++
}

function piece(from, to, left,    i, text) {
    while (from <= to && chars[from] == " ") from++
    while (to >= from && chars[to] == " ") to--
    if (from > to) return
    for (i = from; i <= to; i++) text = text escaped(chars[i])
    lines = lines sprintf("<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\"%s>%s</text>\n", PAD + (from - left) * WIDTH, PAD + row * HEIGHT + 14, (to - from + 1) * WIDTH, styles[from] == "" ? "" : " class=\"" styles[from] "\"", text)
    last = row + 1
}

function change(code,    parts, n, i) {
    n = split(code == "" ? "0" : code, parts, ";")
    for (i = 1; i <= n; i++) {
        if (parts[i] == 0) bold = dim = hue = ""
        else if (parts[i] == 1) bold = "bold "
        else if (parts[i] == 2) dim = "dim "
        else if (parts[i] == 39) hue = ""
        else if (parts[i] >= 31 && parts[i] <= 36) hue = "c" (parts[i] - 30) " "
    }
    style = bold dim hue
    sub(/ $/, "", style)
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
