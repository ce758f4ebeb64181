package render

import (
	"bytes"
	"errors"
	"slices"
	"text/template"
	"text/template/parse"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// maxContent limits the total size of all files in bytes, because a Secret cannot hold more.
const maxContent = 1 << 20

// Limits for templates and passwords.
const (
	maxTemplate = 256 << 10
	maxPassword = 4 << 10
)

// files resolves the content and templates of the user's files (spec.files), from Secrets and with the version of the
// control plane. Their author may not be trusted, so sizes are limited and most functions of Go templates are rejected.
// All roles call it through userPayload.
func (in Input) files() ([]File, error) {
	out := make([]File, 0, len(in.Spec.Files))
	left := maxContent
	for _, f := range in.Spec.Files {
		content, err := in.content(f)
		if err != nil {
			return nil, err
		}
		if left -= len(content); left < 0 {
			return nil, invalid("the content of spec.files exceeds %d KiB, the limit of a Secret, with file %s; download large files on the node instead", maxContent>>10, f.Path)
		}
		out = append(out, File{
			Path: f.Path, Owner: f.Owner, Permissions: f.Permissions, Encoding: f.Encoding,
			Append: f.Append != nil && *f.Append, Content: content,
		})
	}
	return out, nil
}

func (in Input) content(f bootstrapv1.File) ([]byte, error) {
	content := []byte(f.Content)
	if f.ContentFrom.IsDefined() {
		from := f.ContentFrom.Secret
		if why := in.Denied[from.Name]; why != "" {
			return nil, invalid("file %s: %s", f.Path, why)
		}
		var err error
		if content, err = in.Secrets.value("file "+f.Path, from.Name, from.Key); err != nil {
			return nil, err
		}
	}
	if f.ContentFormat != bootstrapv1.FileContentFormatTemplate {
		return content, nil
	}
	return in.expand(f.Path, content)
}

// expand renders content as a Go template. If the version of the control plane is unknown, .controlPlane is empty.
// Templates can test for it with "if" or "with". Using .controlPlane.version without a test is an error, because the
// file would be incomplete.
func (in Input) expand(path string, content []byte) ([]byte, error) {
	controlPlane := map[string]any{}
	if in.ControlPlaneVersion != "" {
		controlPlane["version"] = in.ControlPlaneVersion
	}
	if len(content) > maxTemplate {
		return nil, invalid("the template of file %s has more than %d KiB; set contentFormat to Raw, or use a shorter one", path, maxTemplate>>10)
	}
	t, err := template.New(path).Option("missingkey=error").Parse(string(content))
	if err != nil {
		return nil, invalid("file %s is not a valid template; correct it or set contentFormat to Raw", path).From(err)
	}
	if t.Tree == nil { // the template only contains definitions
		return nil, nil
	}
	if word := unsupportedWord(t.Root); word != "" {
		return nil, invalid("the template of file %s uses %q, which is not supported: use .controlPlane.version and conditions alone", path, word)
	}
	b := limitedBuffer{left: maxContent}
	if err := t.Execute(&b, map[string]any{"controlPlane": controlPlane}); err != nil {
		return nil, invalid("the template of file %s cannot be rendered (.controlPlane.version is only known "+
			"if spec.controlPlaneRef of the Cluster references an object with spec.version)", path).From(err)
	}
	return b.Bytes(), nil
}

// unsupportedWord returns the first unsupported word of a template, or the empty string. Loops, nested templates and
// functions that build text are not supported, so that the time and memory for a template are bounded by its length.
// Otherwise, any client that can write a KubeadmConfig could exhaust this process.
func unsupportedWord(n parse.Node) string {
	switch n := n.(type) {
	case *parse.ListNode:
		return firstUnsupported(n)
	case *parse.ActionNode:
		return unsupportedWord(n.Pipe)
	case *parse.IfNode:
		return firstUnsupported(n.Pipe, n.List, n.ElseList)
	case *parse.WithNode:
		return firstUnsupported(n.Pipe, n.List, n.ElseList)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			if word := firstUnsupported(c.Args...); word != "" {
				return word
			}
		}
		return ""
	case *parse.ChainNode:
		return unsupportedWord(n.Node)
	case *parse.IdentifierNode:
		if !slices.Contains([]string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "index", "slice", "len"}, n.Ident) {
			return n.Ident
		}
		return ""
	case *parse.RangeNode:
		return "range"
	case *parse.TemplateNode:
		return "template"
	}
	return "" // text, fields, variables and constants
}

func firstUnsupported(nodes ...parse.Node) string {
	for _, n := range nodes {
		if list, ok := n.(*parse.ListNode); ok {
			if list == nil { // no else branch
				continue
			}
			nodes := list.Nodes
			if word := firstUnsupported(nodes...); word != "" {
				return word
			}
			continue
		}
		if word := unsupportedWord(n); word != "" {
			return word
		}
	}
	return ""
}

// limitedBuffer fails when a template's output exceeds the limit, before it fills the memory.
type limitedBuffer struct {
	bytes.Buffer
	left int
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("the content is too long")
	}
	return b.Buffer.Write(p)
}

// users resolves passwords from Secrets. All roles call it through userPayload.
func (in Input) users() ([]bootstrapv1.User, error) {
	out := make([]bootstrapv1.User, 0, len(in.Spec.Users))
	for _, u := range in.Spec.Users {
		if u.PasswdFrom.IsDefined() {
			from := u.PasswdFrom.Secret
			if why := in.Denied[from.Name]; why != "" {
				return nil, invalid("the password of user %s: %s", u.Name, why)
			}
			passwd, err := in.Secrets.value("the password of user "+u.Name, from.Name, from.Key)
			if err != nil {
				return nil, err
			}
			if len(passwd) > maxPassword {
				return nil, invalid("the password of user %s in Secret %s has more than %d KiB; replace it", u.Name, from.Name, maxPassword>>10)
			}
			u.Passwd, u.PasswdFrom = string(passwd), bootstrapv1.PasswdSource{}
		}
		out = append(out, u)
	}
	return out, nil
}
