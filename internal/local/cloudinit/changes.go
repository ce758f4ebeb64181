package cloudinit

import (
	"cmp"
	"slices"
)

// Changes are the changes that bootstrap data declares. Commands may change more. The SSH provider records them on the
// host before the data runs, so that cleaning the host can undo them.
type Changes struct {
	// Files are the paths that are written or appended to, sorted.
	Files []string
	// Users are the users that are created if they do not exist.
	Users []CreatedUser
	// Groups are the groups that are created if they do not exist, sorted.
	Groups []string
}

// CreatedUser is a user that bootstrap data creates.
type CreatedUser struct {
	Name string
	// HomeDir is the home directory.
	HomeDir string
}

// DeclaredChanges returns the changes that the bootstrap data declares. All errors are faults of kind Invalid. Package
// ssh/remote calls it before it starts the data.
func DeclaredChanges(data BootstrapData, node NodeSettings) (Changes, error) {
	doc, err := parseBootstrapData(data, node)
	if err != nil {
		return Changes{}, err
	}
	var out Changes
	for _, step := range doc.Steps {
		if step.File != nil {
			out.Files = append(out.Files, step.File.Path)
		}
	}
	sections, err := parseSections(data.Value, node.metadata())
	if err != nil {
		return Changes{}, err
	}
	for _, section := range sections {
		if section.name != "users" || isNull(section.value) {
			continue
		}
		users, _, err := parseUsers(section)
		if err != nil {
			return Changes{}, err
		}
		out.add(users)
	}
	for _, list := range []*[]string{&out.Files, &out.Groups} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return out, nil
}

func (c *Changes) add(users []userItem) {
	for _, u := range users {
		c.Users = append(c.Users, CreatedUser{Name: u.Name, HomeDir: cmp.Or(u.HomeDir, "/home/"+u.Name)})
		for _, g := range append(slices.Clone(u.Groups), u.PrimaryGroup) {
			if g != "" {
				c.Groups = append(c.Groups, g)
			}
		}
	}
}
