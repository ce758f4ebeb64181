package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/secretencryption"
	"github.com/slipwayhq/slipway/internal/fault"
)

// The management cluster itself is in TestEncryptionAtRest (internal/controlplane).
func TestRotate(t *testing.T) {
	dir := datadir.Dir(filepath.Join(t.TempDir(), "data"))
	var said bytes.Buffer
	e := term.Env{Err: &said, Now: time.Now}
	if err := encryptionRun(t.Context(), e, dir, 0); err == nil || !strings.Contains(err.Error(), `"slipway up -d" starts one`) {
		t.Errorf("nothing there: %v", err)
	}
	h, err := datadir.Open(dir, datadir.Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	if err := encryptionRun(t.Context(), e, dir, 0); fault.As(err) == nil || fault.As(err).Reason != "EncryptionKeyMissing" {
		t.Errorf("plain text: %v", err)
	}
	files := secretencryption.Files{Dir: dir}
	if _, err := files.Prepare(false, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := encryptionRun(t.Context(), e, dir, 0); fault.As(err) == nil || fault.As(err).Reason != "EncryptionUnderWay" || fault.KindOf(err) != fault.Transient {
		t.Errorf("it runs, and is not done in time: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := encryptionRun(t.Context(), e, dir, 0); err != nil || !strings.Contains(said.String(), "its next start encrypts Secrets with key-") {
		t.Errorf("it does not run: %v, %s", err, said.String())
	}
	if s, err := files.Status(); err != nil || s.Others != 2 {
		t.Errorf("no key is forgotten before its time: %+v, %v", s, err)
	}
}
