# Prints the targets of make files: "##@ Heading" starts a group,
# "target: … ## text" is an entry of it, "NAME ?= value ## text" a variable.
BEGIN { FS = "##" }
/^##@/ { group = substr($0, 5); next }
/^[a-z][a-z0-9-]*:.*##/ {
    split($1, target, ":")
    add(group == "" || FILENAME == "Makefile" ? "General" : group, sprintf("  %-18s%s", target[1], $2))
}
/^(export )?[A-Z][A-Z0-9_]* *\?=.*##/ {
    sub(/^export /, "")
    split($1, variable, " ")
    add("Variables", sprintf("  %-22s%s", variable[1], $2))
}
function add(name, line) {
    if (!(name in lines)) order[++count] = name
    lines[name] = lines[name] line "\n"
}
END {
    print "Usage: make <target>\n"
    for (i = 1; i <= count; i++) if (order[i] != "Variables") printf "%s\n%s\n", order[i], lines[order[i]]
    if ("Variables" in lines) printf "Variables\n%s", lines["Variables"]
}
