package cloudinit

import "slices"

// assemble converts sections to steps for [parse], in the order of cloud-init's modules, which bootstrap providers rely
// on: bootcmd, write_files, users, ntp, deferred files, runcmd.
func assemble(sections []section, meta metadata) (document, error) {
	var doc document
	byName := map[string][]step{}
	for _, s := range sections {
		if isNull(s.value) {
			continue
		}
		steps, skipped, err := readSection(s, meta)
		if err != nil {
			return document{}, err
		}
		byName[s.name] = steps
		for _, what := range skipped {
			if !slices.Contains(doc.Skipped, what) {
				doc.Skipped = append(doc.Skipped, what)
			}
		}
	}
	var deferred []step
	for _, step := range byName["write_files"] {
		if step.File.deferred {
			deferred = append(deferred, step)
		}
	}
	prompt := slices.DeleteFunc(byName["write_files"], func(s step) bool { return s.File.deferred })
	doc.Steps = slices.Concat(byName["bootcmd"], prompt, byName["users"], byName["ntp"], deferred, byName["runcmd"])
	return doc, nil
}

// readSection returns the steps of one section and the names of its unsupported items.
func readSection(s section, meta metadata) ([]step, []string, error) {
	switch s.name {
	case "bootcmd":
		steps, err := readCommands(s, "export INSTANCE_ID="+quote(meta.InstanceID)+"\n")
		return steps, nil, err
	case "runcmd":
		steps, err := readCommands(s, "")
		return steps, nil, err
	case "write_files":
		return readFiles(s)
	case "users":
		return readUsers(s)
	case "ntp":
		return readNTP(s)
	default:
		return nil, []string{s.name}, nil
	}
}
