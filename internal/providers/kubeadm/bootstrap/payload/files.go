package payload

import (
	"bytes"
	"text/template"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// files resolves content and templates of the user's files (KB-15, KB-16).
func (in Input) files() ([]File, error) {
	out := make([]File, 0, len(in.Spec.Files))
	for _, f := range in.Spec.Files {
		content, err := in.content(f)
		if err != nil {
			return nil, err
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

// expand renders content as a Go template (KB-16). Without a control plane version, .controlPlane is empty:
// a template can ask for it with "if" or "with", and one that uses .controlPlane.version regardless is an
// error rather than a file with a hole.
func (in Input) expand(path string, content []byte) ([]byte, error) {
	controlPlane := map[string]any{}
	if in.ControlPlaneVersion != "" {
		controlPlane["version"] = in.ControlPlaneVersion
	}
	t, err := template.New(path).Option("missingkey=error").Parse(string(content))
	if err != nil {
		return nil, invalid("file %s is not a valid template; correct it or set contentFormat to Raw", path).From(err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, map[string]any{"controlPlane": controlPlane}); err != nil {
		return nil, invalid("the template of file %s cannot be filled in (.controlPlane.version is known only "+
			"where the Cluster has a controlPlaneRef to something with spec.version)", path).From(err)
	}
	return b.Bytes(), nil
}

// users fills in passwords that come from Secrets (KB-15, KB-17).
func (in Input) users() ([]bootstrapv1.User, error) {
	out := make([]bootstrapv1.User, 0, len(in.Spec.Users))
	for _, u := range in.Spec.Users {
		if u.PasswdFrom.IsDefined() {
			from := u.PasswdFrom.Secret
			passwd, err := in.Secrets.value("the password of user "+u.Name, from.Name, from.Key)
			if err != nil {
				return nil, err
			}
			u.Passwd, u.PasswdFrom = string(passwd), bootstrapv1.PasswdSource{}
		}
		out = append(out, u)
	}
	return out, nil
}
