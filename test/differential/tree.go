package differential

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// node is one reply as a tree. Rendered, it is the bytes it was parsed from.
type node struct {
	line string // the first line with its end, type byte included
	body string // of bulks, with its line end
	kids []node
}

// parse reads one whole reply. What the raw client accepted is well-formed, so anything else is a
// fault of the test.
func parse(raw string) (n node, rest string) {
	end := strings.Index(raw, "\r\n") + 2
	if end < 3 {
		panic(fmt.Sprintf("differential: no reply: %.60q", raw))
	}
	n.line, rest = raw[:end], raw[end:]
	if strings.IndexByte("$!=*~>%|", n.line[0]) < 0 {
		return n, rest
	}
	size, err := strconv.Atoi(n.line[1 : end-2])
	if err != nil {
		panic(fmt.Sprintf("differential: no length: %.60q", n.line))
	}
	if size < 0 {
		return n, rest
	}
	switch n.line[0] {
	case '$', '!', '=':
		n.body, rest = rest[:size+2], rest[size+2:]
		return n, rest
	case '%':
		size *= 2
	case '|':
		size = 2*size + 1
	}
	n.kids = make([]node, size)
	for i := range n.kids {
		n.kids[i], rest = parse(rest)
	}
	return n, rest
}

// kind is the reply's type byte.
func (n *node) kind() byte { return n.line[0] }

// text is the payload of a scalar.
func (n *node) text() string {
	if n.body != "" {
		return strings.TrimSuffix(n.body, "\r\n")
	}
	return strings.TrimSuffix(n.line[1:], "\r\n")
}

// field finds the value of a key in a map, or in an array that is a flattened one.
func (n *node) field(key string) *node {
	for i := 0; i+1 < len(n.kids); i += 2 {
		if n.kids[i].text() == key {
			return &n.kids[i+1]
		}
	}
	return nil
}

func (n *node) String() string {
	var b strings.Builder
	n.render(&b)
	return b.String()
}

func (n *node) render(b *strings.Builder) {
	b.WriteString(n.line)
	b.WriteString(n.body)
	for i := range n.kids {
		n.kids[i].render(b)
	}
}

// sorted puts everything below n into an order that depends on content alone.
func (n *node) sorted() {
	width := 1
	if n.kind() == '%' {
		width = 2
	}
	parts := make([]string, 0, len(n.kids))
	for i := 0; i+width <= len(n.kids); i += width {
		part := ""
		for k := range width {
			n.kids[i+k].sorted()
			part += n.kids[i+k].String()
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	rest := strings.Join(parts, "")
	for i := range n.kids {
		n.kids[i], rest = parse(rest)
	}
}

// each visits n and everything below it.
func (n *node) each(visit func(*node)) {
	visit(n)
	for i := range n.kids {
		n.kids[i].each(visit)
	}
}
