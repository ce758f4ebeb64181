package redact_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/slipwayhq/slipway/internal/redact"
)

func TestText(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"plain":           {"Machine m-1:\n\t* Node ist bereit – ✓ 節點", "Machine m-1:\n\t* Node ist bereit – ✓ 節點"},
		"clears a screen": {"down\x1b[2J\x1b[Hall is well", `down\x1b[2J\x1b[Hall is well`},
		"title":           {"\x1b]0;root\x07", `\x1b]0;root\a`},
		"over a line":     {"Available: False\rAvailable: True ", `Available: False\rAvailable: True `},
		"eight bits":      {"a\u009b2J", `a\u009b2J`},
		"direction":       {"a\u202egnp.exe", `a\u202egnp.exe`},
		"deletes":         {"a\x7f\bb", `a\x7f\bb`},
		"no text":         {"a\xff\xfeb", "a\xff\xfeb"},
	} {
		if got := redact.Escape(c.text); got != c.want && strings.ToValidUTF8(got, "�") != strings.ToValidUTF8(c.want, "��") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		var whole, bytes strings.Builder
		if _, err := redact.NewEscapeWriter(&whole).Write([]byte(c.text)); err != nil || whole.String() != c.want {
			t.Errorf("%s: written %q, %v, want %q", name, whole.String(), err, c.want)
		}
		w := redact.NewEscapeWriter(&bytes)
		for i := range len(c.text) {
			if n, err := w.Write([]byte{c.text[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if bytes.String() != c.want {
			t.Errorf("%s: written byte by byte %q, want %q", name, bytes.String(), c.want)
		}
	}
}

func TestClipWords(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		most int
		want string
	}{
		"short":       {"a secret", 8, "a secret"},
		"within":      {"a secret", 5, "a …"},
		"after":       {"a secret value", 8, "a …"},
		"one word":    {"secretvalue", 5, "…"},
		"lines":       {"first\nsecond", 8, "first\n…"},
		"a character": {"a ä ö", 4, "a …"},
	} {
		if got := redact.ClipWords(tc.text, tc.most); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestWriteFails(t *testing.T) {
	if n, err := redact.NewEscapeWriter(full{}).Write([]byte("a")); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
}

// FuzzText: whatever is said, nothing is left that a terminal obeys.
func FuzzText(f *testing.F) {
	f.Add("a\x1b[2J\u202e\r")
	f.Fuzz(func(t *testing.T, text string) {
		var out strings.Builder
		if _, err := redact.NewEscapeWriter(&out).Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for _, got := range []string{redact.Escape(text), out.String()} {
			for _, r := range got {
				if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
					t.Errorf("%q becomes %q", text, got)
				}
			}
		}
	})
}
