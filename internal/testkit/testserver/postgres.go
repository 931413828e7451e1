package testserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
)

// protocol30 is the version of PostgreSQL's protocol that every server since 2003 speaks.
const protocol30 = 3 << 16

// askPostgres starts a session as a client would, as far as the server's first answer: it lets us in, or asks for the password,
// or says what is wrong. A client library would say no more, and this package has no use for one.
func askPostgres(ctx context.Context, u *url.URL) error {
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "5432")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	user := cmp.Or(u.User.Username(), "postgres")
	if _, err := conn.Write(startupMessage(user, cmp.Or(strings.TrimPrefix(u.Path, "/"), user))); err != nil {
		return err
	}
	return readStartup(conn)
}

func startupMessage(user, database string) []byte {
	body := binary.BigEndian.AppendUint32(nil, protocol30)
	for _, s := range []string{"user", user, "database", database} {
		body = append(append(body, s...), 0)
	}
	body = append(body, 0)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)
}

// readStartup reads the first answer: R asks for a password or says that none is needed, E is an error.
func readStartup(r io.Reader) error {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch head[0] {
	case 'R':
		return nil
	case 'E':
		size := min(binary.BigEndian.Uint32(head[1:]), 4096)
		text, err := io.ReadAll(io.LimitReader(r, int64(size)-4))
		if err != nil {
			return fmt.Errorf("read the error: %w", err)
		}
		return fmt.Errorf("it says: %s", errorText(text))
	}
	return fmt.Errorf("it answers with %q, which is not PostgreSQL", head[0])
}

// errorText finds the message among the fields of an error: a letter, a text and a zero each.
func errorText(fields []byte) string {
	for field := range bytes.SplitSeq(fields, []byte{0}) {
		if text, ok := bytes.CutPrefix(field, []byte{'M'}); ok {
			return string(text)
		}
	}
	return "an error without a message"
}
