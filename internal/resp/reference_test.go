package resp

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The reference parsers look at whole buffers, recurse and use strconv: slow and
// obvious. They share nothing with the scanners but the texts.

type verdict int

const (
	whole verdict = iota
	more
	refused
)

var (
	canonicalPrefix = regexp.MustCompile(`^(-|-?[1-9][0-9]*|0)?$`)
	contents        = map[byte]*regexp.Regexp{
		':': regexp.MustCompile(`^[+-]?[0-9]+$`),
		',': regexp.MustCompile(`^[-+0-9.eEinfaINFA]+$`),
		'#': regexp.MustCompile(`^[tf]$`),
		'_': regexp.MustCompile(`^$`),
		'.': regexp.MustCompile(`^$`),
	}
	beginnings = map[byte]*regexp.Regexp{
		':': regexp.MustCompile(`^([+-]?[0-9]*)$`),
		',': regexp.MustCompile(`^[-+0-9.eEinfaINFA]*$`),
		'#': regexp.MustCompile(`^[tf]?$`),
		'_': regexp.MustCompile(`^$`),
		'.': regexp.MustCompile(`^$`),
	}
)

type refCommand struct {
	size   int
	inline bool
	args   []string
	reason string
}

// parseCommand reads one command at the start of b.
func parseCommand(b []byte, l Limits) (refCommand, verdict) {
	if len(b) == 0 {
		return refCommand{}, more
	}
	if b[0] != '*' {
		return parseInline(b, l)
	}
	count, pos, reason, v := parseHeader(b, 0, l, reasonCount, reasonCountLine)
	if v != whole {
		return refCommand{reason: reason}, v
	}
	if count <= 0 {
		return refCommand{size: pos}, whole
	}
	if count > int64(l.MaxArgs) {
		return refCommand{reason: reasonCount}, refused
	}
	c := refCommand{}
	for range count {
		if pos == len(b) {
			return c, more
		}
		if b[pos] != '$' {
			return refCommand{reason: reasonExpected(b[pos])}, refused
		}
		size, body, reason, v := parseHeader(b, pos, l, reasonBulk, reasonBulkLine)
		if v != whole {
			c.reason = reason
			return c, v
		}
		if size < 0 || size > l.MaxBulk {
			return refCommand{reason: reasonBulk}, refused
		}
		end := body + int(size)
		if end >= len(b) {
			return c, more
		}
		if !strings.HasPrefix("\r\n", string(b[end:min(end+2, len(b))])) {
			return refCommand{reason: reasonBulk}, refused
		}
		if end+2 > len(b) {
			return c, more
		}
		c.args = append(c.args, string(b[body:end]))
		pos = end + 2
	}
	c.size = pos
	return c, whole
}

func parseInline(b []byte, l Limits) (refCommand, verdict) {
	line, _, found := bytes.Cut(b, []byte("\n"))
	if len(line) > l.MaxInline || bytes.Contains(line, []byte{0}) {
		return refCommand{inline: true, reason: reasonInline}, refused
	}
	if !found {
		return refCommand{inline: true}, more
	}
	c := refCommand{size: len(line) + 1, inline: true}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if strings.Trim(string(line), " \t\r\n\v\f") != "" {
		c.args = []string{string(line)}
	}
	return c, whole
}

// parseHeader reads a type byte and a number; pos is that of what follows.
func parseHeader(b []byte, at int, l Limits, bad, long string) (n int64, pos int, reason string, v verdict) {
	text := string(b[at+1:])
	text, _, found := strings.Cut(text, "\r")
	if checked := text[:min(len(text), l.MaxInline)]; !canonicalPrefix.MatchString(checked) {
		return 0, 0, bad, refused
	}
	if len(text)+1 > l.MaxInline {
		return 0, 0, long, refused
	}
	pos = at + 1 + len(text) + 1
	if !found || pos == len(b) {
		return 0, 0, "", more
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || b[pos] != '\n' {
		return 0, 0, bad, refused
	}
	return n, pos + 1, "", whole
}

type replyParser struct {
	b      []byte
	frames int
}

// value reads one value at pos, with beyond values owed after it, and returns the
// position behind it and the type behind its attributes.
func (p *replyParser) value(pos int, beyond int64, top bool) (end int, kind byte, v verdict) {
	if pos == len(p.b) {
		return 0, 0, more
	}
	kind = p.b[pos]
	switch {
	case kind == '>' && !top:
		return 0, kind, refused
	case kind == '+' || kind == '-' || kind == '(':
		i := bytes.Index(p.b[pos:], []byte("\r\n"))
		if i < 0 {
			return 0, kind, more
		}
		return pos + i + 2, kind, whole
	case kind != '.' && contents[kind] != nil:
		end, v = p.line(pos)
		return end, kind, v
	case strings.IndexByte("$!=*~%>|", kind) < 0:
		return 0, kind, refused
	}
	text, pos, v := p.length(pos)
	if v != whole {
		return 0, kind, v
	}
	if text == "?" {
		end, v = p.streamed(kind, pos)
		return end, kind, v
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	if n < 0 {
		if n == -1 && (kind == '$' || kind == '*') {
			return pos, kind, whole
		}
		return 0, kind, refused
	}
	switch kind {
	case '$', '!', '=':
		end, v = p.body(pos, n)
		return end, kind, v
	case '%':
		return p.values(pos, n, 2, beyond, kind)
	case '|':
		end, _, v = p.values(pos, n, 2, beyond+1, kind)
		if v != whole {
			return 0, 0, v
		}
		return p.value(end, beyond, top)
	}
	return p.values(pos, n, 1, beyond, kind)
}

func (p *replyParser) values(pos int, n, each, beyond int64, kind byte) (int, byte, verdict) {
	owed := beyond
	if kind != '|' {
		owed++
	}
	if n > maxOwed/each || n*each > maxOwed-owed {
		return 0, kind, refused
	}
	for i := range n * each {
		var v verdict
		if pos, _, v = p.value(pos, beyond+n*each-1-i, false); v != whole {
			return 0, kind, v
		}
	}
	return pos, kind, whole
}

func (p *replyParser) line(pos int) (int, verdict) {
	kind := p.b[pos]
	text, rest, found := strings.Cut(string(p.b[pos+1:]), "\r")
	switch {
	case !beginnings[kind].MatchString(text) || found && !contents[kind].MatchString(text):
		return 0, refused
	case !found || rest == "":
		return 0, more
	case rest[0] != '\n':
		return 0, refused
	}
	return pos + 1 + len(text) + 2, whole
}

// length reads the rest of a header as text that is "?" or an int64.
func (p *replyParser) length(pos int) (string, int, verdict) {
	text, rest, found := strings.Cut(string(p.b[pos+1:]), "\r")
	if text != "?" && (!canonicalPrefix.MatchString(text) || len(strings.TrimPrefix(text, "-")) > 19) {
		return "", 0, refused
	}
	if !found || rest == "" {
		return "", 0, more
	}
	if _, err := strconv.ParseInt(text, 10, 64); rest[0] != '\n' || err != nil && text != "?" {
		return "", 0, refused
	}
	return text, pos + 1 + len(text) + 2, whole
}

func (p *replyParser) body(pos int, n int64) (int, verdict) {
	if n > maxOwed {
		return 0, refused
	}
	if n >= int64(len(p.b)-pos) {
		return 0, more
	}
	end := pos + int(n)
	if !strings.HasPrefix("\r\n", string(p.b[end:min(end+2, len(p.b))])) {
		return 0, refused
	}
	if end+2 > len(p.b) {
		return 0, more
	}
	return end + 2, whole
}

func (p *replyParser) streamed(kind byte, pos int) (int, verdict) {
	if kind == '$' {
		return p.chunks(pos)
	}
	if kind == '!' || kind == '=' || kind == '|' || p.frames == maxStreamDepth {
		return 0, refused
	}
	p.frames++
	defer func() { p.frames-- }()
	for count := 0; ; count++ {
		if pos < len(p.b) && p.b[pos] == '.' {
			end, v := p.line(pos)
			if v == whole && kind == '%' && count%2 == 1 {
				return 0, refused
			}
			return end, v
		}
		var v verdict
		if pos, _, v = p.value(pos, 0, false); v != whole {
			return 0, v
		}
	}
}

func (p *replyParser) chunks(pos int) (int, verdict) {
	for {
		if pos == len(p.b) {
			return 0, more
		}
		if p.b[pos] != ';' {
			return 0, refused
		}
		text, body, v := p.length(pos)
		if v != whole {
			return 0, v
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return 0, refused
		}
		if n == 0 {
			return body, whole
		}
		if pos, v = p.body(body, n); v != whole {
			return 0, v
		}
	}
}

// describeCommands says what the reference makes of a stream of commands.
func describeCommands(b []byte, l Limits) string {
	var out strings.Builder
	for {
		c, v := parseCommand(b, l)
		switch v {
		case refused:
			fmt.Fprintf(&out, "refused %q", c.reason)
			return out.String()
		case more:
			return out.String() + "more"
		}
		fmt.Fprintf(&out, "%d %v %q\n", c.size, c.inline, c.args)
		b = b[c.size:]
	}
}

// describeReplies says what the reference makes of a stream of replies.
func describeReplies(b []byte) string {
	var out strings.Builder
	for {
		end, kind, v := (&replyParser{b: b}).value(0, 0, true)
		switch v {
		case refused:
			return out.String() + "refused"
		case more:
			return out.String() + "more"
		}
		fmt.Fprintf(&out, "%d %c\n", end, kind)
		b = b[end:]
	}
}
