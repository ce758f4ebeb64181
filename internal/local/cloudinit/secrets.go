package cloudinit

import (
	"io/fs"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/redact"
)

// maxText limits the size of bootstrap data that is searched for secrets, in bytes: the search takes a second for this
// size. A Secret cannot contain more, unless it is compressed.
const maxText = 1 << 20

// readByOthers are the permission bits that mark a file as not secret.
const readByOthers fs.FileMode = 0o077

// FindSecrets returns the secrets in the bootstrap data, for [redact.MaskSecrets]: the controllers of LocalMachines and
// SSHMachines mask them in the output that they show in a condition. They are values that files and commands label as
// secrets, opaque words in files that only their owner can read or that have names of secret files, and the whole
// content of a one-line file with such a name. Errors are faults of kind Invalid.
func FindSecrets(data BootstrapData, node NodeSettings) ([]string, error) {
	doc, err := parseBootstrapData(data, node)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, step := range doc.Steps {
		size += len(textOf(step))
	}
	if size > maxText {
		return nil, fault.New(fault.Invalid, "BootstrapDataTooLarge", "the bootstrap data has %d bytes, which is too large to search for secrets", size)
	}
	var out []string
	for _, step := range doc.Steps {
		text := textOf(step)
		out = append(out, redact.FindNamedSecrets(text)...)
		if step.File != nil {
			out = append(out, secretsOf(step.File, text)...)
		}
	}
	return out, nil
}

func textOf(s step) string {
	if s.File != nil {
		return string(s.File.Content)
	}
	return s.Script.Text
}

func secretsOf(f *file, text string) []string {
	named := redact.IsSecretName(f.Path)
	if !named && f.Mode&readByOthers != 0 {
		return nil
	}
	out := redact.FindOpaqueWords(text)
	if line := strings.TrimSpace(text); named && !strings.Contains(line, "\n") {
		out = append(out, line)
	}
	return out
}
