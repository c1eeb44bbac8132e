package load

import (
	"net"
	"testing"
)

func TestRequests(t *testing.T) {
	command, reply := Set([]byte("vv"))(1, 2)
	if string(command) != "*3\r\n$3\r\nSET\r\n$16\r\nbench:000001:002\r\n$2\r\nvv\r\n" || string(reply) != "+OK\r\n" {
		t.Errorf("SET: %q, %q", command, reply)
	}
	command, reply = Get([]byte("vv"))(1, 2)
	if string(command) != "*2\r\n$3\r\nGET\r\n$16\r\nbench:000001:002\r\n" || string(reply) != "$2\r\nvv\r\n" {
		t.Errorf("GET: %q, %q", command, reply)
	}
}

func TestFill(t *testing.T) {
	addr, _ := server(t, answerSets)
	if err := Fill(addr, 3, 4, Value(10)); err != nil {
		t.Error(err)
	}
	refusing, _ := server(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = conn.Write([]byte("-OOM command not allowed, really\r\n"))
	})
	if err := Fill(refusing, 1, 4, Value(10)); err == nil {
		t.Error("a refused SET went unnoticed")
	}
}

func TestMGetReadsWhatFillWrites(t *testing.T) {
	command, reply := MGet(3, 2, []byte("v"))(0, 0)
	want := "*4\r\n$4\r\nMGET\r\n$16\r\nbench:000000:000\r\n$16\r\nbench:000000:001\r\n$16\r\nbench:000001:000\r\n"
	if string(command) != want || string(reply) != "*3\r\n$1\r\nv\r\n$1\r\nv\r\n$1\r\nv\r\n" {
		t.Errorf("%q, %q", command, reply)
	}
}
