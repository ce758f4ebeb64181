package sshtest

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// readScript reads a script from standard input. It returns its name, which is in its first line, and the rest of the input.
func readScript(channel io.Reader) (name string, input *bufio.Reader, ok bool) {
	input = bufio.NewReader(channel)
	for {
		line, err := input.ReadString('\n')
		if err != nil {
			return "", nil, false
		}
		text, isName := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "# slipway: ")
		switch {
		case !isName:
		case text == "end":
			return name, input, true
		default:
			name = text
		}
	}
}

// scriptInput is a channel without the script that was read from it.
type scriptInput struct {
	input io.Reader
	io.WriteCloser
}

// Read implements io.Reader.
func (s scriptInput) Read(p []byte) (int, error) { return s.input.Read(p) }

func (s *Server) serveSession(c ssh.NewChannel) {
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	for r := range requests {
		var payload struct{ Text string }
		_ = ssh.Unmarshal(r.Payload, &payload)
		switch {
		case r.Type == "subsystem" && payload.Text == "sftp":
			s.mu.Lock()
			cut := s.cutFiles
			s.cutFiles = false
			s.mu.Unlock()
			if cut {
				s.Cut()
				return
			}
			_ = r.Reply(true, nil)
			s.serveFiles(channel)
			return
		case r.Type == "exec":
			_ = r.Reply(true, nil)
			name, input, ok := readScript(channel)
			if !ok {
				return
			}
			if name == "sftp" {
				s.serveFiles(scriptInput{input, channel})
				return
			}
			s.runScript(channel, payload.Text, name, input)
			return
		default:
			_ = r.Reply(false, nil)
		}
	}
}

// runScript answers a script.
func (s *Server) runScript(channel ssh.Channel, command, name string, from io.Reader) {
	input, err := io.ReadAll(from)
	if err != nil {
		return
	}
	call := Call{Script: name, Parameters: map[string][]string{}, Sudo: strings.HasPrefix(command, "sudo -n -- ")}
	s.mu.Lock()
	input = input[:max(0, len(input)-s.lost)]
	s.mu.Unlock()
	call.received = input
	head, rest, _ := bytes.Cut(append([]byte("\n"), input...), []byte("\n\n"))
	call.Input = rest
	for line := range strings.Lines(string(head)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			call.Parameters[key] = append(call.Parameters[key], value)
		}
	}
	s.mu.Lock()
	f, delay, cut := s.scripts[call.Script], s.delay, s.cut
	if call.Script != "privileges" {
		s.calls = append(s.calls, call)
	}
	s.mu.Unlock()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-cut:
		return
	}
	result := Result{Errors: "no such script: " + call.Script, Code: 127}
	if f != nil {
		result = f(call)
	}
	_, _ = io.WriteString(channel, result.Output)
	_, _ = io.WriteString(channel.Stderr(), result.Errors)
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(result.Code)}))
}

// serveFiles serves the directory of the host.
func (s *Server) serveFiles(channel io.ReadWriteCloser) {
	files := &files{server: s}
	server := sftp.NewRequestServer(channel, sftp.Handlers{FileGet: files, FilePut: files, FileCmd: files, FileList: files})
	_ = server.Serve()
	_ = server.Close()
}

// RunLocally answers scripts by running them on this machine. The directories that belong to a host are moved into its
// directory; programs that need root are replaced by the commands, which are lines of a shell, or by programs in the
// host's /usr/local/bin.
func (s *Server) RunLocally(library, commands string, scripts map[string]string) {
	pairs := []string{"/.dockerenv", s.Path("/.dockerenv")}
	for _, dir := range []string{"/etc/", "/home/", "/lib/systemd/", "/opt/", "/proc/", "/run/", "/sys/", "/usr/local/", "/var/lib/", "/var/log/"} {
		pairs = append(pairs, dir, s.Path(dir)+"/")
	}
	move := strings.NewReplacer(pairs...)
	for name, text := range scripts {
		s.Handle(name, func(c Call) Result {
			cmd := exec.Command("/bin/sh", "-c", move.Replace(library)+commands+move.Replace(text))
			cmd.Stdin = bytes.NewReader(c.received)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			err := cmd.Run()
			if cmd.ProcessState == nil {
				return Result{Errors: err.Error(), Code: 126}
			}
			return Result{Output: out.String(), Errors: errs.String(), Code: cmd.ProcessState.ExitCode()}
		})
	}
}

// Path returns the path on this machine for a path on the host.
func (s *Server) Path(path string) string { return filepath.Join(s.Root, filepath.Clean("/"+path)) }

// WriteFile writes a file of the host.
func (s *Server) WriteFile(path, content string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.Path(path)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.Path(path), []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// files are the handlers of the SFTP server.
type files struct{ server *Server }

// Fileread implements sftp.FileReader.
func (f *files) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	return os.Open(f.server.Path(r.Filepath))
}

// Filewrite implements sftp.FileWriter.
func (f *files) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	flags := os.O_WRONLY
	if p := r.Pflags(); p.Creat {
		flags |= os.O_CREATE
		if p.Trunc {
			flags |= os.O_TRUNC
		}
		if p.Excl {
			flags |= os.O_EXCL
		}
	}
	file, err := os.OpenFile(f.server.Path(r.Filepath), flags, 0o600)
	if err != nil {
		return nil, err
	}
	return &countedFile{File: file, server: f.server}, nil
}

// Filecmd implements sftp.FileCmder.
func (f *files) Filecmd(r *sftp.Request) error {
	at := f.server.Path(r.Filepath)
	switch r.Method {
	case "Mkdir":
		return os.Mkdir(at, 0o755)
	case "Remove", "Rmdir":
		return os.Remove(at)
	case "Rename":
		return os.Rename(at, f.server.Path(r.Target))
	case "Setstat":
		if r.AttrFlags().Size {
			return os.Truncate(at, int64(r.Attributes().Size))
		}
		return nil
	}
	return sftp.ErrSSHFxOpUnsupported
}

// Filelist implements sftp.FileLister.
func (f *files) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	info, err := os.Stat(f.server.Path(r.Filepath))
	if err != nil {
		return nil, err
	}
	return listing{info}, nil
}

// listing is the response to a request for the attributes of a file.
type listing []os.FileInfo

// ListAt implements sftp.ListerAt.
func (l listing) ListAt(to []os.FileInfo, offset int64) (int, error) {
	if offset >= int64(len(l)) {
		return 0, io.EOF
	}
	n := copy(to, l[offset:])
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}

// countedFile is a file whose written bytes count for [Server.CutAfter].
type countedFile struct {
	*os.File
	server *Server
}

// WriteAt implements io.WriterAt.
func (f *countedFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(p, at)
	if f.server.wrote(len(p)) {
		return 0, io.ErrClosedPipe
	}
	return n, err
}
