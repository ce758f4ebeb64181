# Runs the SFTP server as root.
for server in /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/lib/ssh/sftp-server /usr/libexec/sftp-server /usr/lib/sftp-server /usr/libexec/ssh/sftp-server; do
	[ ! -x $server ] || exec $server
done
fail "there is no sftp-server"
