package docs

import (
	"regexp"
	"strings"
)

// A Command is a command of a shell that a page names: in a block, or in a line.
type Command struct {
	Words []string
	Line  int
}

// programs are those whose commands are looked for.
var programs = map[string]bool{"kubectl": true, "kubectl-weir": true, "helm": true, "make": true}

var (
	inner    = regexp.MustCompile(`\$\([^()]*\)`)
	heredoc  = regexp.MustCompile(`<<-?'?([A-Z]+)'?`)
	variable = regexp.MustCompile(`^[A-Z_]+=`)
)

// Commands returns the commands of programs that are known.
func (p *Page) Commands() (commands []Command) {
	for _, b := range p.Blocks() {
		if b.Language == "" || b.Language == "sh" {
			commands = append(commands, ofScript(b)...)
		}
	}
	for _, s := range p.Spans() {
		commands = append(commands, ofLine(s)...)
	}
	return commands
}

// ofScript returns the commands of a block, with or without the dollar sign of a prompt. The
// output of a command does not begin with the name of a program.
func ofScript(b Block) (commands []Command) {
	begun, end := Span{}, ""
	for i, line := range strings.Split(b.Text, "\n") {
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if end != "" {
			if line == end {
				end = ""
			}
			continue
		}
		if m := heredoc.FindStringSubmatch(line); m != nil {
			end, line = m[1], heredoc.ReplaceAllString(line, "")
		}
		if begun.Text == "" {
			begun.Line = b.Line + i
		}
		part, more := strings.CutSuffix(line, `\`)
		begun.Text += part
		if !more {
			commands = append(commands, ofLine(begun)...)
			begun = Span{}
		}
	}
	return commands
}

// ofLine returns the commands of a line: of a pipe or a list there are several.
func ofLine(line Span) (commands []Command) {
	for _, m := range inner.FindAllString(line.Text, -1) {
		commands = append(commands, ofLine(Span{m[2 : len(m)-1], line.Line})...)
	}
	for _, list := range lists(inner.ReplaceAllString(line.Text, "INNER")) {
		for len(list) > 0 && (variable.MatchString(list[0]) || list[0] == "sudo") {
			list = list[1:]
		}
		if len(list) > 1 && programs[list[0]] {
			commands = append(commands, Command{list, line.Line})
		}
	}
	return commands
}

// lists divides a line into the words of its commands, as a shell does. It leaves comments and
// redirections to files out.
func lists(line string) (lists [][]string) {
	var words []string
	word, begun, quote := "", false, rune(0)
	end := func() {
		if begun {
			words = append(words, word)
		}
		word, begun = "", false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == '#' && !begun:
			end()
			return append(lists, words)
		case r == ' ':
			end()
		case strings.ContainsRune("|&;<>", r):
			end()
			lists, words = append(lists, words), nil
		default:
			word, begun = word+string(r), true
		}
	}
	end()
	return append(lists, words)
}
