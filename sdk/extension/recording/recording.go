package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Call is one recorded call.
type Call struct {
	// Time is the time of the request.
	Time time.Time `json:"time"`
	// Path is the path of the request without the prefix of the extension: /GROUP/VERSION/HOOK/HANDLER in lower case.
	Path string `json:"path"`
	// Query is the query of the request, without the question mark.
	Query string `json:"query,omitempty"`
	// Hook and Handler are in lower case, as in the path. Discovery has no handler.
	Hook    string `json:"hook"`
	Handler string `json:"handler,omitempty"`
	// Object is the object in the request, as Kind namespace/name; empty if there is none.
	Object string `json:"object,omitempty"`
	// Request and Response are the bodies, with the data of Secrets replaced.
	Request  string `json:"request"`
	Response string `json:"response,omitempty"`
	// Redacted means that the data of a Secret was replaced in one of the bodies.
	Redacted bool `json:"redacted,omitempty"`
	// Code is the HTTP status; zero if there was no response.
	Code int `json:"code,omitempty"`
	// Error is the reason why there was no response.
	Error string `json:"error,omitempty"`
	// Seconds is the duration of the call.
	Seconds float64 `json:"seconds"`
}

// Writer appends calls to a stream. It is safe for concurrent use.
type Writer struct {
	mu  sync.Mutex
	out io.Writer
}

// NewWriter returns a Writer for out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write redacts the call and appends it.
func (w *Writer) Write(c Call) error {
	request, first := Redact([]byte(c.Request))
	response, second := Redact([]byte(c.Response))
	c.Request, c.Response, c.Redacted = string(request), string(response), first || second
	line, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encoding a call: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing a recording: %w", err)
	}
	return nil
}

// Read reads all calls of a stream. The error contains the number of an invalid line.
func Read(in io.Reader) ([]Call, error) {
	var calls []Call
	r := bufio.NewReader(in)
	for number := 1; ; number++ {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var c Call
			if problem := json.Unmarshal(line, &c); problem != nil {
				return nil, fmt.Errorf("line %d of the recording is not a call: %w", number, problem)
			}
			calls = append(calls, c)
		}
		if errors.Is(err, io.EOF) {
			return calls, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading a recording: %w", err)
		}
	}
}

// ReadFile reads all calls of a file.
func ReadFile(path string) ([]Call, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return Read(f)
}
