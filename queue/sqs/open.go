package sqs

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Open makes a broker. It asks for credentials, and for nothing else: queues are looked up when they are used.
func Open(ctx context.Context, cfg Config) (*Broker, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("sqs: %w", err)
	}
	chain, err := cfg.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("sqs: %w", err)
	}
	transport := cfg.Transport
	if transport == nil {
		transport = newTransport()
	}
	b := newBroker(cfg)
	b.transport = transport
	b.client = awssqs.NewFromConfig(chain, func(o *awssqs.Options) {
		o.HTTPClient = copyClient{transport: transport}
		o.Retryer = aws.NopRetryer{} // the driver repeats calls itself: it knows what a repetition costs
		if cfg.Endpoint != "" {
			o.BaseEndpoint = aws.String(cfg.Endpoint)
		}
	})
	return b, nil
}

var regionName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// load finds region and credentials.
func (c Config) load(ctx context.Context) (aws.Config, error) {
	var chain aws.Config
	if c.AWS != nil {
		chain = c.AWS.Copy()
	} else {
		var options []func(*awsconfig.LoadOptions) error
		if c.Region != "" {
			options = append(options, awsconfig.WithRegion(c.Region))
		}
		if !c.ofAWS() { // the metadata service of a cloud machine has nothing to say about other servers, and is slow to say so
			options = append(options, awsconfig.WithEC2IMDSClientEnableState(imds.ClientDisabled))
		}
		var err error
		if chain, err = awsconfig.LoadDefaultConfig(ctx, options...); err != nil {
			return aws.Config{}, fmt.Errorf("load the AWS configuration: %w", err)
		}
	}
	if c.Region != "" {
		chain.Region = c.Region
	}
	if chain.Region == "" {
		return aws.Config{}, errors.New("no region: set the region in the configuration, AWS_REGION in the environment or a region in the AWS profile")
	}
	if !regionName.MatchString(chain.Region) { // as a host name it would be asked for without end
		return aws.Config{}, fmt.Errorf("%q is no region: name one such as eu-west-1", chain.Region)
	}
	return chain, c.findCredentials(ctx, &chain)
}

func (c Config) findCredentials(ctx context.Context, chain *aws.Config) error {
	err := errors.New("the AWS configuration has no credentials provider")
	if chain.Credentials != nil {
		_, err = chain.Credentials.Retrieve(ctx)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("find AWS credentials: %w", err)
	case c.ofAWS():
		return fmt.Errorf("no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile in AWS_PROFILE, or run with a role: %w", err)
	}
	chain.Credentials = credentials.NewStaticCredentialsProvider("test", "test", "")
	c.Logger.InfoContext(ctx, "no AWS credentials found: the endpoint is not of AWS, so made-up ones are used")
	return nil
}
