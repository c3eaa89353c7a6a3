FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap patch procps && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY requirements requirements
RUN pip install --no-cache-dir --require-hashes --no-deps -r requirements/hashed.txt \
 && pip install --no-cache-dir -r requirements/run.txt
COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation -e . && useradd --create-home --uid 10001 flywheel
USER flywheel
ENV DJANGO_SETTINGS_MODULE=config.settings
