package manager

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
)

// eager counts how often attributes are written down.
type eager struct {
	slog.Handler
	written *int
}

func (e eager) WithAttrs(attrs []slog.Attr) slog.Handler {
	*e.written++
	return eager{e.Handler.WithAttrs(attrs), e.written}
}

func (e eager) WithGroup(name string) slog.Handler {
	return eager{e.Handler.WithGroup(name), e.written}
}

func TestLazy(t *testing.T) {
	for name, say := range map[string]func(logr.Logger){
		"nothing common": func(l logr.Logger) { l.Info("m", "a", 1) },
		"common":         func(l logr.Logger) { l.WithValues("a", 1).WithValues("b", "two").Info("m", "c", 3) },
		"named":          func(l logr.Logger) { l.WithName("x").WithValues("a", 1).Error(context.Canceled, "m") },
		"siblings": func(l logr.Logger) {
			l = l.WithValues("a", 1, "b", 2, "c", 3)
			one, two := l.WithValues("d", 4), l.WithValues("d", 5)
			one.Info("m")
			two.Info("m")
		},
	} {
		lines := func(wrap func(slog.Handler) slog.Handler) string {
			var out bytes.Buffer
			plain := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}})
			say(logr.FromSlogHandler(wrap(plain)))
			return out.String()
		}
		want := lines(func(h slog.Handler) slog.Handler { return h })
		if diff := cmp.Diff(want, lines(func(h slog.Handler) slog.Handler { return lazyHandler{Handler: h} })); diff != "" || want == "" {
			t.Errorf("%s: want -, got +:\n%s", name, diff)
		}
	}
	var out bytes.Buffer
	l := slog.New(lazyHandler{Handler: slog.NewTextHandler(&out, nil)}).With("a", 1).WithGroup("g").With("b", 2)
	if l.Info("m", "c", 3); !bytes.Contains(out.Bytes(), []byte("a=1 g.b=2 g.c=3")) {
		t.Errorf("a group: %s", out.String())
	}
	written := 0
	quiet := logr.FromSlogHandler(lazyHandler{Handler: eager{slog.NewTextHandler(&out, nil), &written}}).WithValues("a", 1).WithValues("b", 2)
	quiet.V(5).Info("nobody wants to know")
	if written != 0 {
		t.Errorf("attributes of a logger that says nothing were written down %d times", written)
	}
}

// Lines that controller-runtime writes for each controller are those of -v 2.
func TestDetailedLines(t *testing.T) {
	for level, want := range map[slog.Level]bool{0: false, -1: false, -2: true} {
		var out bytes.Buffer
		l := logr.FromSlogHandler(lazyHandler{Handler: slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})})
		l.Info("Starting workers")
		l.Info("Adding GroupVersion v1 to ResourceManager")
		l.Info("ready")
		if got := bytes.Contains(out.Bytes(), []byte("Starting workers")); got != want || bytes.Contains(out.Bytes(), []byte("GroupVersion")) != want || !bytes.Contains(out.Bytes(), []byte("msg=ready")) {
			t.Errorf("level %d: %s", level, out.String())
		}
	}
}
