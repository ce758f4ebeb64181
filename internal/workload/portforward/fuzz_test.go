package portforward

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"

	"github.com/slipwayhq/slipway/internal/fault"
)

// FuzzMessages: whatever messages an API server sends, what is read is what comes after the port in the channel of data, up to the first
// message that is in no channel or says that something went wrong, which is an error; what a kubelet says is part of it, at most so much.
func FuzzMessages(f *testing.F) {
	for _, messages := range []string{
		"\x00\x4b\x09|\x00a|\x00bc", "\x00\x4b|\x00\x09a", "\x00|\x01|\x00\x4b\x09|\x00|\x00a", "\x01\x4b\x09|\x00\x4b\x09a", "\x00\x4b\x09a|", "\x02x", "",
		"\x01\x4b\x09refused|\x00\x4b\x09a", "\x01\x4b|\x01\x09|\x01x", "\x00\x4b\x09a|\x01\x4b\x09\x1b[2J",
	} {
		f.Add([]byte(messages), 7)
	}
	var send [][]byte // by the only request at a time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{channels}})
		if err != nil {
			return // the other side notices
		}
		for _, m := range send {
			if err := ws.Write(r.Context(), websocket.MessageBinary, m); err != nil {
				return // the other side has had enough
			}
		}
		_ = ws.Close(websocket.StatusNormalClosure, "")
	}))
	f.Cleanup(server.Close)
	transport := &http.Transport{DisableKeepAlives: true}
	f.Fuzz(func(t *testing.T, messages []byte, size int) {
		send = bytes.Split(messages, []byte("|"))
		conn, err := Dial(t.Context(), transport, server.URL, pod)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		got, err := readParts(conn, 1+int(uint(size)%100))
		want, refused, said := model(send)
		if !bytes.Equal(got, want) || (err != nil) != refused {
			t.Errorf("read %q, %v; want %q, refused %t", got, err, want, refused)
		}
		if said && (fault.KindOf(err) != fault.Unreachable || len(err.Error()) > maxProblem+200) {
			t.Errorf("what went wrong is %v", err)
		}
	})
}

// readParts reads a connection to its end, at most so many bytes at a time.
func readParts(from io.Reader, size int) (all []byte, err error) {
	part := make([]byte, size)
	for {
		n, err := from.Read(part)
		all = append(all, part[:n]...)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// model is what is read of messages: the data, and whether there is an error after it, which is what the other side said.
func model(messages [][]byte) (data []byte, refused, said bool) {
	var before [channelCount][]byte
	for _, m := range messages {
		if len(m) == 0 || m[0] >= channelCount {
			return data, true, false
		}
		channel, content := m[0], m[1:]
		port := min(portBytes-len(before[channel]), len(content))
		before[channel] = append(before[channel], content[:port]...)
		if content = content[port:]; channel == dataChannel {
			data = append(data, content...)
		} else if len(content) > 0 {
			return data, true, true
		}
	}
	return data, false, false
}
