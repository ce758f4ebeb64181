package cloudinit

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipwayhq/slipway/internal/fault"
)

// reasonInvalid is the reason of all faults of this package. They require a change of the document.
const reasonInvalid = "InvalidCloudConfig"

const (
	header      = "#cloud-config"
	jinjaHeader = "## template: jinja"
	// maxSize limits the size of a decompressed document, in bytes. Secrets hold at most 1 MiB.
	maxSize = 16 << 20
)

// document is a parsed cloud-config. [parse] returns it, and [RenderScript] turns its steps into the bootstrap script.
type document struct {
	// Steps run one after the other. As with cloud-init, a failed step does not prevent the next one, and only the
	// sentinel file indicates that the machine is ready.
	Steps []step
	// Skipped lists the sections and items that a machine without its own disks and packages does not support, in
	// document order and without duplicates.
	Skipped []string
}

// step is a file or a script. Exactly one of File and Script is set. The readers of the sections return steps, and
// render.go renders them.
type step struct {
	// Section is the cloud-config section of the step.
	Section string
	File    *file
	Script  *script
}

// script is a script for /bin/sh, run as root in one process with the working directory /. render.go runs each one as a
// step, and reports the failed commands by their index.
type script struct {
	Text string
	// Commands are the items of bootcmd or runcmd that follow Prologue in Text; a null item is empty. Commands is nil
	// if one of the items may be incomplete without the others.
	Commands []string
	Prologue string
}

// parse parses the document, which is the user data of a Machine's bootstrap Secret. The placeholders of a jinja
// document are replaced with values from meta. All errors are Invalid faults with reason [reasonInvalid].
// [RenderScript] and the other functions that take [BootstrapData] call it.
func parse(data []byte, meta metadata) (document, error) {
	sections, err := parseSections(data, meta)
	if err != nil {
		return document{}, err
	}
	return assemble(sections, meta)
}

func parseSections(data []byte, meta metadata) ([]section, error) {
	text, err := plainText(data)
	if err != nil {
		return nil, err
	}
	rendered, err := renderTemplate(text, meta)
	if err != nil {
		return nil, err
	}
	return readSections(rendered, isTemplate(text))
}

func invalidFault(message string, args ...any) *fault.Fault {
	return fault.New(fault.Invalid, reasonInvalid, message, args...)
}

// plainText decompresses user data that is gzipped as a whole.
func plainText(data []byte) (string, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return string(data), nil
	}
	out, err := gunzip(data)
	if err != nil {
		return "", invalidFault("the bootstrap data begins like a gzip file but cannot be decompressed").From(err)
	}
	return string(out), nil
}

func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, maxSize+1))
	if err != nil {
		return nil, err
	}
	if len(out) > maxSize {
		return nil, invalidFault("content is larger than %d bytes when decompressed", maxSize)
	}
	return out, nil
}

// renderTemplate checks the first line and expands the placeholders if the document is a template.
func renderTemplate(text string, meta metadata) (string, error) {
	first, rest, _ := strings.Cut(text, "\n")
	if isTemplate(text) {
		rendered, err := expandJinja(rest, meta)
		if err != nil {
			return "", err
		}
		text = rendered
		first, _, _ = strings.Cut(text, "\n")
	}
	if strings.TrimSpace(first) != header {
		return "", invalidFault("bootstrap data must begin with %q (after an optional %q line), not with %q",
			header, jinjaHeader, shorten(first))
	}
	return text, nil
}

// isTemplate reports whether the first line declares a template. The template starts on the next line.
func isTemplate(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return strings.EqualFold(strings.TrimSpace(first), jinjaHeader)
}

func shorten(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// section is one top-level key of the document and its value. The reader of each section (assemble.go) parses its
// value.
type section struct {
	name  string
	value *yaml.Node
}

// readSections returns the top-level keys in document order. If a key occurs twice, the last value is returned at the
// position of the first.
func readSections(text string, afterTemplateLine bool) ([]section, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, invalidFault("the cloud-config is not valid YAML%s", problemOf(err, afterTemplateLine)).From(err)
	}
	if doc.Kind == 0 || isNull(doc.Content[0]) {
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, invalidFault("the cloud-config must be a mapping of section names to their contents")
	}
	var out []section
	index := map[string]int{}
	for i := 0; i < len(root.Content); i += 2 {
		name, value := root.Content[i].Value, root.Content[i+1]
		if at, again := index[name]; again {
			out[at].value = value
			continue
		}
		index[name] = len(out)
		out = append(out, section{name: name, value: value})
	}
	return out, nil
}

var (
	yamlProblem = regexp.MustCompile(`^yaml: (?:line (\d+): )?([^\n]+)`)
	// quotedParts matches quoted excerpts of the document in YAML errors, which may contain secrets.
	quotedParts = regexp.MustCompile("'[^']*'|\"[^\"]*\"|`[^`]*`")
)

// problemOf describes the YAML error with its line number and without any content of the document.
func problemOf(err error, afterTemplateLine bool) string {
	found := yamlProblem.FindStringSubmatch(err.Error())
	if found == nil {
		return ""
	}
	problem := quotedParts.ReplaceAllString(found[2], "…")
	line, notANumber := strconv.Atoi(found[1])
	if notANumber != nil {
		return ": " + problem
	}
	if afterTemplateLine {
		line++
	}
	return fmt.Sprintf(": line %d: %s", line, problem)
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}
