package resp

// Span is the half-open byte range [Start, End) of one argument's payload,
// counted from the first byte of its command.
type Span struct{ Start, End int }

// Command is one complete command in canonical multibulk form.
//
// Raw holds the exact bytes to forward, from '*' to the last CRLF. Args locates
// each argument's payload inside Raw; Args[0] is the command's name. Both alias
// the reader's buffers: they are valid only until the next call that reads.
type Command struct {
	Raw  []byte
	Args []Span
}

// Len is the number of arguments, the name included.
func (c Command) Len() int { return len(c.Args) }

// Arg returns argument i (0 is the name), or nil where there is none.
func (c Command) Arg(i int) []byte {
	if i < 0 || i >= len(c.Args) {
		return nil
	}
	s := c.Args[i]
	return c.Raw[s.Start:s.End:s.End]
}
