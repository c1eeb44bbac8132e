package load

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Key is the key that a caller uses for command i of its pipeline. Keys differ, so that a server
// pays for looking them up as it does in life.
func Key(caller, i int) string { return fmt.Sprintf("bench:%06d:%03d", caller, i) }

// Value returns n bytes of payload.
func Value(n int) []byte { return bytes.Repeat([]byte("v"), n) }

// Set returns a Request that writes value, and Get one that reads it back.
func Set(value []byte) func(caller, i int) (command, reply []byte) {
	return func(caller, i int) (command, reply []byte) {
		return encode("SET", Key(caller, i), string(value)), []byte("+OK\r\n")
	}
}

// Get returns a Request that reads what Fill has written.
func Get(value []byte) func(caller, i int) (command, reply []byte) {
	reply := []byte("$" + strconv.Itoa(len(value)) + "\r\n" + string(value) + "\r\n")
	return func(caller, i int) (command, expect []byte) {
		return encode("GET", Key(caller, i)), reply
	}
}

// MGet returns a Request that reads n keys at once, of those that Fill has written with the
// given pipeline and at least n/pipeline callers.
func MGet(n, pipeline int, value []byte) func(caller, i int) (command, reply []byte) {
	args := []string{"MGET"}
	for k := range n {
		args = append(args, Key(k/pipeline, k%pipeline))
	}
	command := encode(args...)
	reply := []byte("*" + strconv.Itoa(n) + "\r\n" + strings.Repeat("$"+strconv.Itoa(len(value))+"\r\n"+string(value)+"\r\n", n))
	return func(int, int) (c, r []byte) { return command, reply }
}

func encode(args ...string) []byte {
	b := []byte("*" + strconv.Itoa(len(args)) + "\r\n")
	for _, a := range args {
		b = append(b, "$"+strconv.Itoa(len(a))+"\r\n"+a+"\r\n"...)
	}
	return b
}

// Fill writes value to every key of so many callers and pipelines.
func Fill(addr string, callers, pipeline int, value []byte) error {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	set := Set(value)
	for caller := range callers {
		var batch []byte
		for i := range pipeline {
			command, _ := set(caller, i)
			batch = append(batch, command...)
		}
		if _, err := conn.Write(batch); err != nil {
			return err
		}
		replies := make([]byte, pipeline*len("+OK\r\n"))
		if _, err := io.ReadFull(conn, replies); err != nil {
			return err
		}
		if want := bytes.Repeat([]byte("+OK\r\n"), pipeline); !bytes.Equal(replies, want) {
			return fmt.Errorf("filling: %s", excerpt(replies))
		}
	}
	return nil
}
