package recording

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzRead: a recording is refused, or says the same when it is written and read again, apart from what must not be kept.
func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"hook":"h","request":"{}","response":"{}"}` + "\n", "\n\n", "{", `{"request":"{\"kind\":\"Secret\",\"data\":{\"a\":\"b\"}}"}`, "null\n", "[]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		calls, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		write := func(calls []Call) []Call {
			var out bytes.Buffer
			w := NewWriter(&out)
			for _, c := range calls {
				if err := w.Write(c); err != nil {
					return nil // a time that cannot be written
				}
			}
			again, err := Read(&out)
			if err != nil {
				t.Fatalf("%q is written as what cannot be read: %v", data, err)
			}
			return again
		}
		once := write(calls)
		if diff := cmp.Diff(once, write(once)); once != nil && diff != "" {
			t.Errorf("%q is another one each time (-want +got):\n%s", data, diff)
		}
	})
}
