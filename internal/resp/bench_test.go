package resp

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkReplies(b *testing.B) {
	for _, c := range []struct{ name, in string }{
		{"OK", "+OK\r\n"},
		{"integer", ":12345\r\n"},
		{"null", "$-1\r\n"},
		{"bulk64", "$64\r\n" + strings.Repeat("x", 64) + "\r\n"},
		{"bulk16k", "$16384\r\n" + strings.Repeat("x", 16384) + "\r\n"},
		{"error60", "-ERR " + strings.Repeat("x", 60) + "\r\n"},
		{"mget100", "*100\r\n" + strings.Repeat("$8\r\n12345678\r\n", 100)},
		{"xreadgroup", "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$15\r\n1700000000000-0\r\n*2\r\n$4\r\ndata\r\n$16\r\n0123456789abcdef\r\n"},
		{"resp3map", "%2\r\n+a\r\n,1.5\r\n+b\r\n#t\r\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			in := []byte(c.in)
			var s ReplyScanner
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, done, _ := s.Scan(in); !done {
					b.Fatal("not done")
				}
			}
		})
	}
}

// The same reply in two pieces goes the byte-wise way.
func BenchmarkReplyInPieces(b *testing.B) {
	in := []byte("$64\r\n" + strings.Repeat("x", 64) + "\r\n")
	for _, cut := range []int{2, 20} {
		b.Run(fmt.Sprint(cut), func(b *testing.B) {
			var s ReplyScanner
			for b.Loop() {
				s.Scan(in[:cut])
				s.Scan(in[cut:])
			}
		})
	}
}

func BenchmarkCommands(b *testing.B) {
	for _, c := range []struct{ name, in string }{
		{"GET", "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000001\r\n"},
		{"SET64", "*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000001\r\n$64\r\n" + strings.Repeat("x", 64) + "\r\n"},
		{"MGET100", "*101\r\n$4\r\nMGET\r\n" + strings.Repeat("$8\r\n12345678\r\n", 100)},
		{"inline", "GET key:000000000001\r\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			in := []byte(c.in)
			s := NewCommandScanner(DefaultLimits())
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, done, _ := s.Scan(in); !done {
					b.Fatal("not done")
				}
			}
		})
	}
}

func BenchmarkAppendInline(b *testing.B) {
	line := []byte(`SET key:000000000001 "hello world"`)
	var dst []byte
	var spans []Span
	b.ReportAllocs()
	for b.Loop() {
		dst, spans, _ = AppendInline(dst[:0], spans[:0], line)
	}
}
