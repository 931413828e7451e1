package config

import (
	"net/url"
	"regexp"
	"strings"
	"time"
)

var (
	rabbitPrefix = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	sqsPrefix    = regexp.MustCompile(`^[A-Za-z0-9_-]{0,60}$`)
	awsRegion    = regexp.MustCompile(`^[a-z0-9-]{0,63}$`)
	accountID    = regexp.MustCompile(`^[0-9]{12}$`)
)

// rabbitmq checks the section of the broker rabbitmq. URLs carry passwords: their values are never part of a problem, but masked.
func (v *validator) rabbitmq() {
	c := v.c.RabbitMQ
	if len(c.URLs) == 0 {
		v.problem("rabbitmq.urls", "is empty: name at least one node, for example amqp://user:password@host:5672/vhost")
	}
	encrypted := false
	for i, u := range c.URLs {
		encrypted = v.node(i, u) || encrypted
	}
	if c.TLS != (TLS{}) && !encrypted {
		v.problem("rabbitmq.tls", "is set, but no URL of rabbitmq.urls is encrypted: write amqps:// (usually with port 5671)")
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		v.problem("rabbitmq.tls", "cert_file and key_file go together: set both or neither")
	}
	if c.ConsumerTimeout > 0 && c.ConsumerTimeout < time.Minute {
		v.problem("rabbitmq.consumer_timeout", "%v is too little: use at least 1m, or 0s if the broker has none", c.ConsumerTimeout)
	}
	if !rabbitPrefix.MatchString(c.Prefix) {
		v.problem("rabbitmq.prefix", "%q is no prefix: use 1 to 100 letters, digits, dots, underscores or dashes, for example cs1.", c.Prefix)
	}
	if len(c.Name) > 200 || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' || r > '~' }) {
		v.problem("rabbitmq.name", "must have at most 200 printable ASCII characters")
	}
	if !c.Management.IsZero() {
		if m, err := url.Parse(c.Management.Reveal()); err != nil || m.Host == "" || m.Scheme != "http" && m.Scheme != "https" {
			v.problem("rabbitmq.management", "is no http or https URL with a host: for example http://user:password@host:15672 (percent-encode what is special in a password)")
		}
	}
}

// node checks one URL and reports whether it is encrypted.
func (v *validator) node(i int, u SecretURL) bool {
	parsed, err := url.Parse(u.Reveal())
	switch {
	case err != nil || parsed.Hostname() == "":
		v.problem("rabbitmq.urls", "item %d is no URL with a host: write amqp://user:password@host:5672/vhost, with %%40 for an @ in a password and the like", i+1)
	case parsed.Scheme != "amqp" && parsed.Scheme != "amqps":
		v.problem("rabbitmq.urls", "item %d (%s) has the scheme %q: use amqp or amqps", i+1, u, parsed.Scheme)
	default:
		return parsed.Scheme == "amqps"
	}
	return false
}

// sqs checks the section of the broker sqs.
func (v *validator) sqs() {
	c := v.c.SQS
	if !awsRegion.MatchString(c.Region) {
		v.problem("sqs.region", "%q is no region: for example eu-west-1", c.Region)
	}
	if !sqsPrefix.MatchString(c.Prefix) {
		v.problem("sqs.prefix", "%q is no prefix: SQS takes letters, digits, underscores and dashes, here at most 60", c.Prefix)
	}
	if c.AccountID != "" && !accountID.MatchString(c.AccountID) {
		v.problem("sqs.account_id", "%q is no account: it has 12 digits (in quotes in a file)", c.AccountID)
	}
	if c.Endpoint == "" {
		return
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		v.problem("sqs.endpoint", "is no http or https URL with a host: for example http://127.0.0.1:4566")
	case u.User != nil:
		v.problem("sqs.endpoint", "carries a user name: credentials come from the SDK's chain, for example AWS_ACCESS_KEY_ID")
	case u.RawQuery != "" || u.Fragment != "":
		v.problem("sqs.endpoint", "carries more than a host and a path: nothing may follow them")
	}
}
