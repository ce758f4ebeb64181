package firstboot

import (
	"io/fs"
	"strings"

	"github.com/slipwayhq/slipway/internal/cloudconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/redact"
)

// maxText bounds in how much of bootstrap data secrets are looked for, in bytes: a second's work. A Secret holds as much, unless it is compressed.
const maxText = 1 << 20

// readByOthers are the permissions that a file with secrets does not have.
const readByOthers fs.FileMode = 0o077

// Secrets returns what bootstrap data must not let others than root know, for [redact.Hide]: what files and commands name as a secret, the
// opaque words of files that only their owner reads or whose names are those of secrets, and the line that is all of a file with such a name.
// Errors are faults of kind Invalid.
func Secrets(data Data, node Node) ([]string, error) {
	doc, err := parse(data, node)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, step := range doc.Steps {
		size += len(textOf(step))
	}
	if size > maxText {
		return nil, fault.New(fault.Invalid, "BootstrapDataTooLarge", "the bootstrap data has %d bytes, in which no secrets are looked for", size)
	}
	var out []string
	for _, step := range doc.Steps {
		text := textOf(step)
		out = append(out, redact.Named(text)...)
		if step.File != nil {
			out = append(out, secretsOf(step.File, text)...)
		}
	}
	return out, nil
}

func textOf(step cloudconfig.Step) string {
	if step.File != nil {
		return string(step.File.Content)
	}
	return step.Script.Text
}

func secretsOf(file *cloudconfig.File, text string) []string {
	named := redact.IsNamed(file.Path)
	if !named && file.Mode&readByOthers != 0 {
		return nil
	}
	out := redact.Opaque(text)
	if line := strings.TrimSpace(text); named && !strings.Contains(line, "\n") {
		out = append(out, line)
	}
	return out
}
