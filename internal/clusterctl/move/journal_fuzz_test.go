package move

import (
	"bytes"
	"compress/gzip"
	"testing"
)

// FuzzJournal: a journal is in a ConfigMap that tenants may write; it is refused, or can be written again.
func FuzzJournal(f *testing.F) {
	for _, text := range []string{`{}`, `{"plan":{"entries":[{}]}}`, `[`, `null`, `{"phase":"x"}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = decodeJournal(text) // not what gzip makes
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		if _, err := z.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		j, err := decodeJournal(zipped.Bytes())
		if err != nil {
			return
		}
		if _, err := j.encode(); err != nil && len(text) < 1<<16 {
			t.Errorf("%q: %v", text, err)
		}
	})
}
